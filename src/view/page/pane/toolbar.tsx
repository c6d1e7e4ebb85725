/** What one can do with an opened file: what is needed all the time as buttons, the rest in a menu. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { address } from '../api.ts';
import { Icon, IconButton, Passed } from '../parts/button.tsx';
import { KEYS } from './keys.ts';
import type { Opened } from './opened.ts';

interface ToolbarProps {
  readonly opened: Opened;
  readonly title: ComponentChildren;
  readonly canGrow: boolean;
  readonly onSearch: () => void;
  /** The user moved elsewhere in the file. */
  readonly onGone: () => void;
}

export function Toolbar({ opened, title, canGrow, onSearch, onGone }: ToolbarProps) {
  const { file } = opened;
  const following = file.following.value;
  return (
    <div class="pane-bar">
      {title}
      <div class="toolbar" role="toolbar" aria-label="File">
        <span class="fine copied" role="status">
          {opened.notice.value}
        </span>
        {canGrow && (
          <IconButton
            icon={following ? 'pause' : 'play'}
            label={following ? 'Following' : 'Follow'}
            title={following ? 'Pause' : 'Follow'}
            keyName="f"
            isPressed={following}
            kind="following"
            onClick={() => (following ? file.pause() : file.follow())}
          >
            <span class="word">{following ? 'Following' : 'Follow'}</span>
          </IconButton>
        )}
        <IconButton icon="start" label="To the beginning" keyName="g" onClick={() => file.jumpTo(0)} />
        <IconButton icon="end" label="To the end" keyName="Shift+G" onClick={() => file.jumpToEnd()} />
        <GoTo opened={opened} onGone={onGone} />
        <IconButton icon="search" label="Search" keyName="/" onClick={onSearch} />
        <Menu opened={opened} />
      </div>
    </div>
  );
}

function GoTo({ opened, onGone }: Pick<ToolbarProps, 'opened' | 'onGone'>) {
  const typed = useSignal('');
  const problem = useSignal(false);
  const go = async () => {
    const isThere = await opened.goTo(typed.value);
    if (isThere !== undefined) problem.value = !isThere;
    if (isThere === true) onGone();
  };
  return (
    <input
      class="goto"
      type="text"
      inputMode="numeric"
      size={9}
      placeholder="Go to line"
      aria-label="Go to a line"
      title="Go to a line (l)"
      aria-invalid={problem.value}
      value={typed.value}
      onInput={(event) => {
        typed.value = event.currentTarget.value;
        problem.value = false;
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter') void go();
        if (event.key === 'Escape') onGone();
      }}
    />
  );
}

function Menu({ opened }: Pick<ToolbarProps, 'opened'>) {
  const menu = useRef<HTMLDetailsElement>(null);
  const isOpen = useSignal(false);
  // It closes after a choice, and when the reader goes elsewhere.
  useEffect(() => {
    const over = new AbortController();
    const closeIfOver = (event: Event) => {
      const target = event.target as Element;
      const isChoice = event.type === 'click' && target.closest('.menu-items') !== null;
      const isOutside = event.type === 'pointerdown' && target.closest('.menu') !== menu.current;
      const isEscape = event instanceof KeyboardEvent && event.key === 'Escape';
      if (isChoice || isOutside || isEscape) menu.current?.removeAttribute('open');
    };
    for (const type of ['pointerdown', 'click', 'keydown'])
      document.addEventListener(type, closeIfOver, { signal: over.signal });
    return () => over.abort();
  }, []);
  return (
    <details class="menu" ref={menu} onToggle={() => (isOpen.value = menu.current?.open === true)}>
      <summary class="icon-button" aria-label="More" title="More">
        <Icon name="more" />
      </summary>
      <div class="menu-items">
        {KEYS.filter(({ isInMenu }) => isInMenu).map(({ keys: [key], words, onFile, isOn }) => {
          const isPressed = isOn?.(opened);
          return (
            <button
              key={key}
              type="button"
              aria-pressed={isPressed}
              onClick={({ currentTarget }) => onFile?.(opened, currentTarget)}
            >
              <span class="tick">{isPressed === true && '✓'}</span>
              {words.charAt(0).toUpperCase() + words.slice(1)} <kbd>{key}</kbd>
            </button>
          );
        })}
        {isOpen.value && (
          <>
            <Passed to={address('raw', { ...opened.content(), plain: '1' })} isTab>
              <span class="tick" />
              Plain text in a tab of its own
            </Passed>
            <Passed to={address('raw', opened.content())}>
              <span class="tick" />
              Download
            </Passed>
          </>
        )}
      </div>
    </details>
  );
}
