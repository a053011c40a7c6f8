/** Owns light and dark: what the system wants, unless the user chose. */
import { element } from './element.ts';

const storageKey = 'trivec-theme';
const themes = ['system', 'light', 'dark'] as const;
type Theme = (typeof themes)[number];

function apply(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
}

/** A button that goes through the themes; the choice stays in this browser. */
export function themeButton(): HTMLButtonElement {
  const stored = localStorage.getItem(storageKey);
  let theme: Theme = themes.find((known) => known === stored) ?? 'system';
  const button = element('button', { type: 'button', class: 'quiet theme' });
  const show = () => {
    apply(theme);
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener('click', () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length] ?? 'system';
    localStorage.setItem(storageKey, theme);
    show();
  });
  show();
  return button;
}
