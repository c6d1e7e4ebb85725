/** What one can do with an opened file. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { address } from '../api.ts';
import { Icon, IconButton } from '../parts/button.tsx';
import type { Opened } from './opened.ts';

interface ToolbarProps {
  readonly opened: Opened;
  readonly title: ComponentChildren;
  readonly isWatched: boolean;
  readonly onSearch: () => void;
  /** The user moved elsewhere in the file. */
  readonly onGone: () => void;
}

export function Toolbar({ opened, title, isWatched, onSearch, onGone }: ToolbarProps) {
  const { file, wraps, isRaw } = opened;
  const following = file.following.value;
  return (
    <div class="pane-bar">
      {title}
      <div class="toolbar" role="toolbar" aria-label="File">
        {isWatched && (
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
        <IconButton icon="start" label="To the beginning" keyName="g" onClick={() => opened.toEnd(true)} />
        <IconButton icon="end" label="To the end" keyName="Shift+G" onClick={() => opened.toEnd(false)} />
        <GoTo opened={opened} onGone={onGone} />
        <IconButton icon="search" label="Search" keyName="/" onClick={onSearch} />
        <IconButton icon="plot" label="Plot the numbers" keyName="p" onClick={() => opened.togglePlot()} />
        <IconButton
          icon="wrap"
          label="Wrap lines"
          keyName="w"
          isPressed={wraps.value}
          onClick={() => (wraps.value = !wraps.value)}
        />
        <IconButton
          icon="raw"
          label="Show control characters"
          title="Show control characters, and what they overwrite"
          keyName="r"
          isPressed={isRaw.value}
          onClick={() => (isRaw.value = !isRaw.value)}
        />
        <CopyButton opened={opened} />
        <a
          class="icon-button"
          href={address('raw', opened.content())}
          download
          aria-label="Download"
          title="Download all of it"
        >
          <Icon name="download" />
        </a>
      </div>
    </div>
  );
}

function GoTo({ opened, onGone }: Pick<ToolbarProps, 'opened' | 'onGone'>) {
  const typed = useSignal('');
  const problem = useSignal(false);
  const go = async () => {
    problem.value = !(await opened.goTo(typed.value));
    if (!problem.value) onGone();
  };
  return (
    <input
      class="goto"
      type="text"
      inputMode="text"
      size={9}
      placeholder="Go to"
      aria-label="Go to a line, or a byte (@4096)"
      title="Go to a line (1200) or a byte (@4096)   (l)"
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

function CopyButton({ opened }: Pick<ToolbarProps, 'opened'>) {
  return (
    <>
      <IconButton
        icon="copy"
        label="Copy the chosen lines, or those on the screen"
        title="Copy the chosen lines, or those on the screen"
        keyName="c"
        onClick={() => void opened.copy()}
      />
      <span class="copied" role="status">
        {opened.notice.value}
      </span>
    </>
  );
}
