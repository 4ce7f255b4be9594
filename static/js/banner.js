// Open pages learn of a block or a kill switch without being loaded again.
import { morph, parse } from "./patch.js";

const EVERY = 10000;

export function startBanner() {
  if (!document.getElementById("banner")) return;
  const look = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch("/live/banner", { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) return;
      const fresh = parse((await answer.text()).trim());
      if (fresh?.id === "banner") morph(document.getElementById("banner"), fresh);
    } catch {
      // The next turn of the clock asks again.
    }
  };
  setInterval(look, EVERY);
  document.addEventListener("visibilitychange", look);
}
