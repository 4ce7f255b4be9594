// Words looked for in the whole run: the hits come beside the turns; each leads to its row, on this page or by the server.
import { parse } from "./patch.js";
import { say } from "./messages.js";

export function startFind(root) {
  const form = root.querySelector("[data-find]");
  const box = root.querySelector("[data-found]");
  if (!form || !box) return;
  let asked = 0;
  const look = async (address, more) => {
    const mine = ++asked;
    box.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(address);
      if (answer.redirected) return location.reload();
      if (!answer.ok) throw new Error(String(answer.status));
      const fresh = parse(await answer.text());
      // What was typed later is what counts.
      if (mine !== asked) return;
      if (more) more.replaceWith(...fresh.childNodes);
      else box.replaceChildren(fresh);
    } catch {
      if (mine === asked) say("The run could not be looked through; try again.", true);
    } finally {
      if (mine === asked) box.removeAttribute("aria-busy");
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = new FormData(form).get("q");
    if (!words.trim()) box.replaceChildren();
    else look(`${form.getAttribute("action")}?part=1&q=${encodeURIComponent(words)}`);
  });
  box.addEventListener("click", (event) => {
    const link = event.target.closest("[data-find-more]");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    look(`${link.getAttribute("href")}&part=1`, link.parentElement);
  });
}
