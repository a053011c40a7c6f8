/** Owns noting which members of a value are asked for, whoever asks. */

/** Asked for by the language itself. */
const unmeant = new Set(['toJSON', 'then', 'constructor', 'length']);

/** The same value; `note` is told the path of every member that is asked for, there or not, such as `inputs[].text`. */
export function recorded(value: unknown, note: (path: string) => void, path = ''): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    return new Proxy(value, {
      get: (target, key) => {
        const element: unknown = Reflect.get(target, key);
        return typeof key === 'string' && /^\d+$/.test(key) ? recorded(element, note, `${path}[]`) : element;
      },
    });
  }
  const nameOf = (key: string | symbol) => {
    if (typeof key !== 'string') return '';
    const full = path === '' ? key : `${path}.${key}`;
    if (!unmeant.has(key)) note(full);
    return full;
  };
  return new Proxy(value, {
    get: (target, key) => recorded(Reflect.get(target, key), note, nameOf(key)),
    has: (target, key) => {
      nameOf(key);
      return Reflect.has(target, key);
    },
    getOwnPropertyDescriptor: (target, key) => {
      nameOf(key);
      return Reflect.getOwnPropertyDescriptor(target, key);
    },
  });
}
