// The title of the page, with the number of runs that wait for an answer before it.
let words = document.title.replace(/^\(\d+\+?\) /, "");
let many = 0;

export function titled(text) {
  words = text;
  show();
}

export function counted(count) {
  many = count;
  show();
}

function show() {
  const title = many ? `(${many}) ${words}` : words;
  if (document.title !== title) document.title = title;
}
