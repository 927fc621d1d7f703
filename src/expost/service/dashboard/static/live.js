// Keeps open pages current. Everything here works without it.
"use strict";
const cells = (account, what) => document.querySelectorAll(`[data-account="${CSS.escape(account)}"] [data-of="${what}"]`);
const source = new EventSource("/live");
source.addEventListener("balances", (event) => {
  for (const balance of JSON.parse(event.data)) {
    for (const what of ["limit", "spent", "reserved", "remaining"]) {
      for (const cell of cells(balance.account, what)) cell.textContent = balance[what].epsilon;
    }
    const amount = (what) => Number(balance[what].epsilon);
    const whole = amount("spent") + amount("reserved") + amount("remaining") || 1; // as bar_of in pages.py
    for (const what of ["spent", "reserved"]) {
      const share = 100 * amount(what) / whole;
      for (const bar of document.querySelectorAll(`[data-account="${CSS.escape(balance.account)}"] [data-bar="${what}"]`)) {
        bar.setAttribute("width", `${share}%`);
        if (what === "reserved") bar.setAttribute("x", `${100 * amount("spent") / whole}%`);
      }
    }
  }
});
const waiting = document.querySelector("[data-waiting]");
source.addEventListener("job", (event) => {
  if (waiting && waiting.dataset.waiting === JSON.parse(event.data).id) location.reload();
});
// The answer may have come before this page listened, or while it was cut off. Balances are sent first, and when they change.
const look = async () => {
  const page = await fetch(location.href);
  if (page.ok && !(await page.text()).includes("data-waiting")) location.reload();
};
if (waiting) source.addEventListener("balances", () => look().catch(() => {}));
window.addEventListener("pagehide", () => source.close());
