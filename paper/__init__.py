"""The figures and tables of the paper, recomputed: ``python -m paper FOLDER``. Not part of the installed library."""
