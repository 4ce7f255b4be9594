// The fleet page: rows are patched where they stand; new ones wait behind a pill while somebody is reading.
import { Live } from "./live.js";
import { morph, parse, apply } from "./patch.js";

export function startFleet() {
  const root = document.getElementById("fleet");
  if (!root) return;
  const body = document.getElementById("rows");
  const pill = root.querySelector("[data-new-pill]");
  const filtered = root.dataset.filtered === "true";
  const waiting = new Map();
  let seen = new Date(Date.now() - 5000).toISOString();
  let pointed = false;
  body.addEventListener("pointerenter", () => (pointed = true));
  body.addEventListener("pointerleave", () => {
    pointed = false;
    if (!reading()) insert();
  });

  const reading = () => pointed || scrollY > 40 || body.contains(document.activeElement);

  const place = ({ fresh, parent }) => {
    document.getElementById("empty")?.remove();
    const above = parent && document.getElementById(`run-${parent}`);
    if (above) above.after(fresh);
    else body.prepend(fresh);
  };

  const insert = () => {
    for (const item of waiting.values()) place(item);
    waiting.clear();
    pill.hidden = true;
  };

  const row = (patch) => {
    const fresh = parse(patch.html);
    const old = document.getElementById(patch.id);
    if (old) morph(old, fresh);
    else if (waiting.has(patch.id)) waiting.get(patch.id).fresh = fresh;
    // What a filter means only the server knows: the pill then leads to a fresh page.
    else waiting.set(patch.id, { fresh, parent: patch.parent });
  };

  const take = (message) => {
    if (message.ts) seen = message.ts;
    if (message.type !== "patches") return;
    for (const patch of message.patches) {
      if (patch.op === "row") row(patch);
      else apply(patch);
    }
    if (waiting.size && !filtered && !reading()) insert();
    pill.hidden = !waiting.size;
    pill.textContent = filtered ? `${waiting.size} changed elsewhere` : `${waiting.size} new`;
  };

  pill.addEventListener("click", () => (filtered ? location.reload() : insert()));
  const live = new Live({
    address: () => `/ws/fleet?format=html&since=${encodeURIComponent(seen)}`,
    frame: take,
    poll: async () => {
      const answer = await fetch(`/live/fleet${location.search}`, { headers: { Accept: "application/json" } });
      // Sent to the sign-in page: the session is over.
      if (answer.redirected) return location.reload();
      if (!answer.ok) throw new Error(String(answer.status));
      take(await answer.json());
    },
  });
  root.pilothouse = { live };
}
