// The run page: frames in, acknowledgements out, live text, and a view that does not jump.
import { Live } from "./live.js";
import { apply, parse } from "./patch.js";
import { Texts } from "./texts.js";
import { mirror } from "./menus.js";
import { startJumps } from "./jumps.js";
import { startFind } from "./find.js";
import { startPieces } from "./pieces.js";
import { startProse } from "./prose.js";
import { titled } from "./title.js";

const MOST_TURNS = 90;
const KEEP_TURNS = 60;
const PHONE_TURNS = 3;
const MOST_LISTED = 300;
const BUDGET_MS = 24;
// The bar of verbs at the bottom of a phone's screen.
const THUMB = 84;

export function startRun() {
  const root = document.getElementById("run");
  if (!root) return;
  const id = root.dataset.run;
  const texts = new Texts();
  const scroll = new Follow(root);
  const historic = new URLSearchParams(location.search).has("before");
  let cursor = Number(root.dataset.after);
  let queue = [];
  let due = false;

  const take = (message) => {
    if (message.type === "delta") texts.add(message);
    else if (message.type === "withdrawn") texts.withdraw(message);
    else if (message.type === "patches") {
      for (const patch of message.patches) queue.push(patch);
      if (message.seq) queue.push(message.seq);
      plan();
      return;
    } else if (message.type === "heartbeat" || message.type === "resync") live.say({ type: "ack", seq: cursor });
    scroll.follow();
  };

  const plan = () => {
    if (!due && queue.length) {
      due = true;
      schedule(flush);
    }
  };

  // As much as fits into a frame; the rest waits for the next one, so that the page answers the reader at any rate.
  const flush = () => {
    due = false;
    const until = performance.now() + BUDGET_MS;
    scroll.hold();
    let done = 0;
    do {
      const item = queue[done++];
      if (typeof item === "number") cursor = Math.max(cursor, item);
      else if (!(historic && item.target === "turns")) apply(item);
    } while (done < queue.length && performance.now() < until);
    queue = queue.slice(done);
    texts.refill();
    trim(scroll);
    status(root);
    mirror();
    scroll.settle();
    live.say({ type: "ack", seq: cursor });
    plan();
  };

  const live = new Live({
    address: () => `/ws/runs/${id}?after=${cursor}&format=html`,
    frame: take,
    poll: async () => {
      const answer = await fetch(`/runs/${id}/changes?after=${cursor}`, { headers: { Accept: "application/json" } });
      // Sent to the sign-in page: the session is over.
      if (answer.redirected) return location.reload();
      if (!answer.ok) throw new Error(String(answer.status));
      take(await answer.json());
    },
  });

  earlier(id, scroll);
  startFind(root);
  startPieces(root);
  startProse(root);
  startJumps(root);
  status(root);
  scroll.start();
  // For whoever drives the page in tests: where it stands, and a way to cut the line.
  root.pilothouse = { live, cursor: () => cursor };
}

// A frame when the page is seen; at once when it is not, because hidden pages get no animation frames.
function schedule(work) {
  if (document.hidden) setTimeout(work, 0);
  else requestAnimationFrame(work);
}

// What depends on the state but lies outside the patched parts.
function status(root) {
  const line = document.getElementById("side-status");
  const final = line?.dataset.final === "true";
  root.dataset.status = line?.dataset.status || "";
  const task = document.querySelector("h1").textContent.slice(0, 60);
  const title = `${task} · ${line?.dataset.word || ""} · Pilothouse`;
  titled(title);
  const send = document.getElementById("steer-send");
  if (send) send.disabled = final;
  const note = document.getElementById("steer-note");
  if (note && final) note.placeholder = "The run has ended; a note would reach nobody.";
  for (const button of document.querySelectorAll(".thumb .button")) {
    button.classList.toggle("disabled", final);
    button.setAttribute("aria-disabled", String(final));
    if ("disabled" in button) button.disabled = final;
  }
  const pause = document.querySelector("[data-thumb-pause]");
  if (pause) {
    const paused = line?.dataset.word === "Paused";
    pause.textContent = paused ? "Go on" : "Pause";
    pause.setAttribute("formaction", `/runs/${root.dataset.run}/${paused ? "unpause" : "pause"}`);
    pause.dataset.verb = paused ? "unpause" : "pause";
  }
}

// Long runs stay light: cards far above the reader go, and the link to them comes.
function trim(scroll) {
  const listed = document.getElementById("outline");
  while (listed.childElementCount > MOST_LISTED) listed.lastElementChild.remove();
  if (scroll.atEnd && document.querySelectorAll("#turns > .turn").length > MOST_TURNS) keepLast(KEEP_TURNS);
}

function keepLast(many) {
  const cards = document.querySelectorAll("#turns > .turn");
  if (cards.length <= many) return;
  const first = cards[cards.length - many];
  const turns = first.parentElement;
  while (turns.firstElementChild !== first) turns.firstElementChild.remove();
  point(Number(first.dataset.turn));
}

function point(before) {
  const box = document.getElementById("earlier");
  const link = box.querySelector("a");
  box.hidden = !before;
  link.dataset.earlier = before || "";
  link.href = `?before=${before || ""}`;
}

function earlier(id, scroll) {
  document.getElementById("earlier").addEventListener("click", async (event) => {
    const link = event.target.closest("a");
    if (!link) return;
    event.preventDefault();
    const answer = await fetch(`/runs/${id}/earlier?before=${link.dataset.earlier}`);
    if (!answer.ok) return;
    const { html, earlier: more } = await answer.json();
    const turns = document.getElementById("turns");
    const anchor = turns.firstElementChild;
    const at = anchor?.getBoundingClientRect().top || 0;
    const wrapped = parse(`<div>${html}</div>`);
    for (const node of [...wrapped.children]) if (!document.getElementById(node.id)) turns.insertBefore(node, anchor);
    point(more);
    if (anchor) scroll.page.scrollTop += anchor.getBoundingClientRect().top - at;
  });
}

// Follows the newest line only while the reader is at the end.
class Follow {
  constructor(root) {
    this.atEnd = true;
    this.middle = root.querySelector(".middle");
    this.turns = root.querySelector("#turns");
    this.button = root.querySelector("[data-to-bottom]");
    this.button.addEventListener("click", () => this.toEnd());
  }

  // The middle column scrolls by itself where there is room for columns; else the page does.
  get page() {
    const own = getComputedStyle(this.middle).overflowY;
    return own === "auto" ? this.middle : document.scrollingElement;
  }

  // How far the newest line lies below what can be seen.
  below() {
    if (this.page === this.middle) return this.page.scrollHeight - this.page.clientHeight - this.page.scrollTop;
    return this.turns.getBoundingClientRect().bottom - innerHeight + THUMB;
  }

  end() {
    return this.below() < 60;
  }

  start() {
    if (!location.hash && !new URLSearchParams(location.search).has("before")) {
      // On a phone the newest turns stand right under the numbers; the others are a tap away.
      if (this.page !== this.middle) keepLast(PHONE_TURNS);
      else this.toEnd();
    }
    this.atEnd = this.end();
    // Only the reader's own way up ends following: rows that grow below change the distance, not the wish.
    let top = this.page.scrollTop;
    const moved = () => {
      const now = this.page.scrollTop;
      if (now < top - 1) this.atEnd = this.end();
      else if (this.end()) this.atEnd = true;
      top = now;
      if (this.atEnd) this.button.hidden = true;
    };
    new ResizeObserver(() => this.follow()).observe(this.turns);
    addEventListener("scroll", moved, { passive: true });
    this.middle.addEventListener("scroll", moved, { passive: true });
  }

  hold() {
    this.height = this.page.scrollHeight;
  }

  settle() {
    if (this.atEnd) this.follow();
    else if (this.page.scrollHeight > this.height + 20) this.button.hidden = false;
  }

  follow() {
    const below = this.atEnd ? this.below() : 0;
    if (below > 0) this.page.scrollTop += below;
  }

  toEnd() {
    this.atEnd = true;
    this.follow();
    this.button.hidden = true;
  }
}
