/** Owns light and dark: what the system wants, unless the user chose. */
import { element } from './element.ts';
import { openStorage } from './storage.ts';

const storageKey = 'trivec-theme';
const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];

function apply(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

/** A button that goes through the themes; the choice stays in this browser, where that keeps anything. */
export function themeButton(): HTMLButtonElement {
  const storage = openStorage('local');
  const stored = storage.get(storageKey);
  let theme: Theme = themes.find((known) => known === stored) ?? 'system';
  const button = element('button', { type: 'button', class: 'quiet theme' });
  const show = () => {
    apply(theme);
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system';
    storage.set(storageKey, theme);
    show();
  });
  show();
  return button;
}
