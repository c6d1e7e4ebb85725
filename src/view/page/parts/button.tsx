/** Controls: a button that is a picture, whose label is read out and shown with its key, and a box to check. */
import type { Signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { usePassed } from './hooks.ts';

interface IconButtonProps {
  /** Left out where a sign of text stands instead. */
  readonly icon?: IconName;
  readonly label: string;
  /** What a click does, unless the label is enough. */
  readonly title?: string;
  /** The key that does the same. */
  readonly keyName?: string;
  readonly isPressed?: boolean;
  /** For its style alone. */
  readonly kind?: string;
  readonly onClick: () => void;
  /** What stands beside the picture where there is room. */
  readonly children?: ComponentChildren;
}

export function IconButton({
  icon,
  label,
  title = label,
  keyName,
  isPressed,
  kind = '',
  onClick,
  children,
}: IconButtonProps) {
  return (
    <button
      type="button"
      class={`icon-button ${kind}`}
      aria-label={label}
      title={keyName === undefined ? title : `${title} (${keyName})`}
      aria-pressed={isPressed}
      onClick={onClick}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A link that downloads, or opens a tab of its own. */
export function Passed({ to, isTab = false, ...props }: PassedProps) {
  const href = usePassed(to);
  return (
    <a
      {...(href !== undefined && { href })}
      {...props}
      {...(isTab ? { target: '_blank', rel: 'noopener' } : { download: '' })}
    />
  );
}

interface PassedProps {
  readonly to: string;
  readonly isTab?: boolean;
  readonly class?: string;
  readonly children: ComponentChildren;
}

export const Check = ({ value, children }: { value: Signal<boolean>; children: ComponentChildren }) => (
  <label class="check">
    <input type="checkbox" checked={value.value} onChange={() => (value.value = !value.value)} /> {children}
  </label>
);

/** Icons of buttons, drawn on 16 by 16. The label of the button explains it. */
const PATHS = {
  back: 'M10 3 5 8l5 5',
  beside: 'M2.5 3h11v10h-11zM8 3v10',
  close: 'm4 4 8 8m0-8-8 8',
  download: 'M8 2v7.5M5 6.5l3 3 3-3M2.5 10.5v3h11v-3',
  end: 'm4 3.5 4 4 4-4M3 11.5h10',
  file: 'M4 2h5l3.5 3.5V14H4zm5 0v3.5h3.5',
  folder: 'M2 4h4l1.5 1.5H14V13H2z',
  keys: 'M1.5 4h13v8.5h-13zM4 6.5h.5m3.25 0h.5m3.25 0h.5M4.5 10h7',
  more: 'M3 8h.5m4.25 0h.5m4.25 0h.5',
  next: 'm4 6 4 4 4-4',
  pause: 'M5.5 3.5v9m5-9v9',
  play: 'M5 3.5v9l7-4.5z',
  previous: 'm4 10 4-4 4 4',
  search: 'M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zm3.3 7.8L14 14',
  start: 'm4 12.5 4-4 4 4M3 4.5h10',
  warning: 'M8 2 1.5 13.5h13zM8 6.5v3.5m0 1.5v.5',
} as const;

type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
