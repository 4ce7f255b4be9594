// A whole result comes on demand and slice by slice: the first one replaces the preview, others are put behind it.
import { parse } from "./patch.js";
import { say } from "./messages.js";

export function startPieces(root) {
  root.addEventListener("click", (event) => {
    const link = event.target.closest("[data-whole]");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (!link.hasAttribute("aria-busy")) more(link);
  });
}

async function more(link) {
  const at = Number(link.dataset.at || 0);
  link.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`${link.getAttribute("href").split("?")[0]}piece?at=${at}`, { headers: { Accept: "application/json" } });
    if (answer.redirected) return location.reload();
    if (!answer.ok) throw new Error(String(answer.status));
    show(link, at, await answer.json());
  } catch {
    say("The result could not be read; try again.", true);
  } finally {
    link.removeAttribute("aria-busy");
  }
}

// The row may have been patched meanwhile; what is there now is written to.
function show(link, at, { html, next, total, note }) {
  const shown = link.closest(".call-more").querySelector(".result");
  const fresh = parse(`<pre>\n${html}</pre>`);
  if (at) shown.append(...fresh.childNodes);
  else shown.replaceChildren(...fresh.childNodes);
  const line = link.parentElement;
  if (next === null) {
    line.textContent = note || "";
    return;
  }
  link.dataset.at = next;
  link.textContent = `Show more (${next.toLocaleString("en-US")} of ${total.toLocaleString("en-US")} bytes are here)`;
}
