// Makes elements of the document. Text is always set as text, never parsed as HTML.

// element('td', {class: 'number', title: 'x'}, 'text', anotherElement)
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, '');
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

// A bar that shows a share from 0 to 1, with its text.
export function bar(share, text, kind = '') {
  const filled = element('span', {class: 'filled'});
  filled.style.width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return element('span', {class: `bar ${kind}`}, element('span', {class: 'track'}, filled),
                 element('span', {class: 'bar-text'}, text));
}

// Replaces the children only if `key` has changed since the last call, so that an update costs nothing while nothing
// happens, and a selection of text survives.
export function replaceIfChanged(parent, key, makeChildren) {
  if (parent.dataset.key === key) return;
  parent.dataset.key = key;
  parent.replaceChildren(...makeChildren());
}
