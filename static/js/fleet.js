// The fleet page: rows are patched where they stand; new ones wait behind a pill while somebody is reading.
import { Live } from "./live.js";
import { morph, parse, apply } from "./patch.js";

// The page shows the newest families. Past MOST rows the oldest go, and the link to older runs leads to them.
const MOST = 120;
const KEEP = 60;
// As much as fits into a frame, with the layout and paint that it brings about; the rest waits for the next one.
const BUDGET_MS = 4;

export function startFleet() {
  const root = document.getElementById("fleet");
  if (!root) return;
  const body = document.getElementById("rows");
  const pill = root.querySelector("[data-new-pill]");
  const older = document.getElementById("older");
  const filtered = root.dataset.filtered === "true";
  // By element id, so that a row that changes again before its turn is written once.
  const queue = new Map();
  const waiting = new Map();
  let due = false;
  let seen = new Date(Date.now() - 5000).toISOString();
  let pointed = false;
  body.addEventListener("pointerenter", () => (pointed = true));
  body.addEventListener("pointerleave", () => {
    pointed = false;
    if (!reading()) insert();
  });

  const reading = () => pointed || scrollY > 40 || body.contains(document.activeElement);

  // Ids are ordered by time: a family older than the last one here belongs to a later page.
  const elsewhere = (patch) => !filtered && !older.hidden && patch.root < body.lastElementChild?.dataset.root;

  const place = (patch) => {
    document.getElementById("empty")?.remove();
    const above = patch.parent && document.getElementById(`run-${patch.parent}`);
    const fresh = parse(patch.html);
    if (above) above.after(fresh);
    else body.insertBefore(fresh, [...body.children].find((row) => row.dataset.root < patch.root) || null);
  };

  const insert = () => {
    for (const patch of waiting.values()) if (!elsewhere(patch)) place(patch);
    waiting.clear();
    pill.hidden = true;
    trim();
  };

  const trim = () => {
    if (body.childElementCount <= MOST) return;
    // Whole families go, so that a page begins with a run that no other one started.
    let last = KEEP;
    while (last < body.childElementCount && body.children[last].dataset.root === body.children[last - 1].dataset.root) last += 1;
    const gone = [...body.children].slice(last);
    if (!gone.length) return;
    older.querySelector("a").href = `?cursor=${gone[0].dataset.root}~`;
    older.hidden = false;
    for (const row of gone) row.remove();
  };

  const row = (patch) => {
    const old = document.getElementById(patch.id);
    if (old) morph(old, parse(patch.html));
    // What a filter means only the server knows: the pill then leads to a fresh page.
    else if (!elsewhere(patch)) waiting.set(patch.id, patch);
  };

  const flush = () => {
    due = false;
    const until = performance.now() + BUDGET_MS;
    for (const [id, patch] of queue) {
      queue.delete(id);
      if (patch.op === "row") row(patch);
      else apply(patch);
      if (performance.now() > until) break;
    }
    if (queue.size) return plan();
    if (waiting.size && !filtered && !reading()) insert();
    pill.hidden = !waiting.size;
    const word = filtered ? `${waiting.size} changed elsewhere` : `${waiting.size} new`;
    if (pill.textContent !== word) pill.textContent = word;
    // Only now: the server holds back what comes faster than it is shown.
    live.say({ type: "ack", seq: 0 });
  };

  // At once when the page is not seen, because hidden pages get no animation frames.
  const plan = () => {
    if (due) return;
    due = true;
    if (document.hidden) setTimeout(flush, 0);
    else requestAnimationFrame(flush);
  };

  const take = (message) => {
    if (message.ts) seen = message.ts;
    if (message.type !== "patches") return live.say({ type: "ack", seq: 0 });
    document.dispatchEvent(new CustomEvent("rows", { detail: message.patches }));
    for (const patch of message.patches) queue.set(patch.id, patch);
    plan();
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
