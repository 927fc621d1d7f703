// What a search shows first: names that one types first, then the methods of tables, then the guide; theory last.
var Scorer = {
  score: ([page, title, anchor, description, score, file, kind]) => {
    if (/^(theor|proofs|paper|benchmarks|durable-format)/.test(page)) return score - 20;
    if (kind === "object") {
      if (/^expost\.[A-Z]\w*$/.test(title)) return score + 20;
      if (/^expost\.PrivateTable\.\w+$/.test(title)) return score + 15;
      return /^expost\.(mechanisms|questions|learn)\.\w+$/.test(title) ? score : score - 5;
    }
    return /^reference/.test(page) ? score - 5 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
