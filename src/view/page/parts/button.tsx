/** A button that is a picture: its label is read out, and shown with the key that does the same. */
import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

export interface IconButtonProps {
  readonly icon: IconName;
  readonly label: string;
  /** What a click does, if the label does not say it. */
  readonly title?: string;
  /** The key that does the same. */
  readonly keyName?: string;
  readonly isPressed?: boolean;
  readonly isDisabled?: boolean;
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
  isDisabled,
  onClick,
  children,
}: IconButtonProps) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={label}
      title={keyName === undefined ? title : `${title} (${keyName})`}
      aria-pressed={isPressed}
      disabled={isDisabled}
      onClick={onClick}
    >
      <Icon name={icon} />
      {children}
    </button>
  );
}
