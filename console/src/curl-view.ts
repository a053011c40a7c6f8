/** Owns showing a curl command with a button that copies it. */
import { element } from './element.ts';

/** A view of one command at a time. */
export function curlView(): { readonly view: HTMLElement; show(command: string): void } {
  const code = element('code');
  const block = element('pre', { tabindex: '0', 'aria-label': 'curl command' }, code);
  const copy = element('button', { type: 'button', class: 'quiet' }, 'Copy');
  const told = element('span', { class: 'hint', role: 'status', 'aria-live': 'polite' });
  copy.addEventListener('click', () => {
    void copyText(code).then((isCopied) => {
      told.textContent = isCopied ? 'Copied' : 'Selected: press Ctrl+C';
    });
  });
  const view = element(
    'section',
    { class: 'curl card', 'aria-label': 'The same with curl' },
    element('div', { class: 'head' }, element('h3', {}, 'The same with curl'), told, copy),
    block,
  );
  return {
    view,
    show(command) {
      code.textContent = command;
      told.textContent = '';
    },
  };
}

/** False where the browser gives no clipboard to this page: then the text is selected. */
async function copyText(source: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(source.textContent);
    return true;
  } catch {
    getSelection()?.selectAllChildren(source);
    return false;
  }
}
