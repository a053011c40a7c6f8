/** Owns making elements: text becomes text nodes and nothing else, so that no input is ever read as markup. */

/** What an element may hold; null leaves nothing. */
export type Child = Node | string | null;
type Attributes = Readonly<Record<string, string | boolean>>;

/** An element with attributes (true is present, false absent) and children. */
export function element<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  setAttributes(made, attributes);
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** The same for a part of a drawing. */
export function drawing<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  setAttributes(made, attributes);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function setAttributes(target: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) target.setAttribute(name, value === true ? '' : value);
  }
}

let lastId = 0;
/** An id that no other element has. */
export const freshId = (prefix: string): string => `${prefix}-${++lastId}`;
