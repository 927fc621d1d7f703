"""The commands about studies: what they print, whatever names and words they are given."""

from pathlib import Path

from typer.testing import CliRunner

from expost.cli.main import app
from studies import COUNT, write_study

RUNNER = CliRunner()


def test_words_are_no_markup(tmp_path: Path) -> None:
    label = 'label = "[/bold] of :smile: [red]x"\n'
    path = write_study(tmp_path, COUNT + label)
    path.write_text(path.read_text().replace('name = "people"', 'name = "pe[o]ple"'))
    study = path.rename(tmp_path / "my [last] study.toml")
    for command in (["plan", str(study)], ["run", str(study)], ["report", str(study)]):
        result = RUNNER.invoke(app, command)
        assert result.exit_code == 0, result.output
        if command[0] != "plan":
            assert ("pe[o]ple: limit" if command[0] == "run" else "my [last] study.html") in result.output
