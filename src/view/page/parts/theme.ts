/** Light or dark: as the system, until the user chooses; then this browser stores it. */
import { signal } from '@preact/signals';

const KEPT_AS = 'jobtail-theme';
type Theme = 'light' | 'dark';

export const theme = signal<Theme>('light');

/** Follows the system, and what was chosen before. */
export function startTheme(): void {
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const apply = () => {
    const kept = localStorage.getItem(KEPT_AS);
    show(kept === 'light' || kept === 'dark' ? kept : dark.matches ? 'dark' : 'light');
  };
  dark.addEventListener('change', apply);
  apply();
}

export function toggleTheme(): void {
  show(theme.value === 'dark' ? 'light' : 'dark');
  localStorage.setItem(KEPT_AS, theme.value);
}

function show(chosen: Theme): void {
  theme.value = chosen;
  document.documentElement.dataset['theme'] = chosen;
}
