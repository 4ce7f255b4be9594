// Live text by call: pieces that fit are appended, others wait for the next whole copy. Only textContent is used.
import { visible } from "./plain.js";

export class Texts {
  constructor() {
    this.known = new Map();
  }

  add({ call, attempt, offset, text }) {
    const held = this.known.get(call);
    if (offset === 0) this.set(call, attempt, text);
    else if (held && held.attempt === attempt && held.size === offset) {
      held.text += text;
      held.size += [...text].length;
      this.show(call, held);
    }
  }

  // Offsets count characters, as the server does; JavaScript's length counts UTF-16 units.
  set(call, attempt, text) {
    const held = { attempt, text, size: [...text].length };
    this.known.set(call, held);
    this.show(call, held);
  }

  withdraw({ call }) {
    this.known.delete(call);
    const box = document.getElementById(`text-${call}`);
    if (box?.dataset.streaming) box.textContent = "";
  }

  show(call, held) {
    const box = document.getElementById(`text-${call}`);
    if (!box?.dataset.streaming) return;
    const text = visible(held.text);
    if (box.textContent === text) return;
    const last = box.lastChild;
    const before = box.textContent;
    // Appending keeps a reader's selection in what is there already.
    if (last && text.startsWith(before)) last.appendData(text.slice(before.length));
    else box.textContent = text;
  }

  // After patches: rows that have come since their text did, and calls that are over.
  refill() {
    for (const [call, held] of this.known) {
      const box = document.getElementById(`text-${call}`);
      if (box && !box.dataset.streaming) this.known.delete(call);
      else if (box && !box.textContent) this.show(call, held);
    }
  }
}
