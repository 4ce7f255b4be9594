// Pages of slow numbers look again by themselves while somebody sees them; open menus and typed words stay.
import { morph, parse } from "./patch.js";

const EVERY = 5000;

export function startRefresh() {
  const root = document.querySelector("[data-refresh]");
  if (!root) return;
  const again = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      // Sent to the sign-in page: the session is over.
      if (answer.redirected) return location.reload();
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(root.id);
      if (fresh) morph(document.getElementById(root.id), parse(fresh.outerHTML));
    } catch {
      // The next turn of the clock asks again.
    }
  };
  // How soon to look again may change with what is seen: all is over, nothing moves any more.
  const next = () => setTimeout(() => again().finally(next), Number(document.getElementById(root.id)?.dataset.refresh) || EVERY);
  next();
  document.addEventListener("visibilitychange", again);
}
