/** What one can do with an opened file. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { OpenFile } from '../file/open-file.ts';
import { IconButton } from '../parts/button.tsx';
import { Icon } from '../parts/icon.tsx';
import { destination } from './goto.ts';

export interface ToolbarProps {
  readonly title: ComponentChildren;
  readonly file: OpenFile;
  readonly wraps: boolean;
  readonly isWatched: boolean;
  readonly downloads: string;
  readonly onSearch: () => void;
  readonly onPlot: () => void;
  readonly onWrap: () => void;
  readonly onCopy: () => Promise<string>;
  readonly onLine: (line: number) => Promise<void>;
}

export function Toolbar(props: ToolbarProps) {
  const { title, file, wraps, isWatched, downloads, onSearch, onPlot, onWrap } = props;
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
            onClick={() => (following ? file.pause() : file.follow())}
          >
            <span class="word">{following ? 'Following' : 'Follow'}</span>
          </IconButton>
        )}
        <IconButton icon="start" label="To the beginning" keyName="g" onClick={() => file.jumpTo(0)} />
        <IconButton icon="end" label="To the end" keyName="Shift+G" onClick={() => file.jumpToEnd()} />
        <GoTo {...props} />
        <IconButton icon="search" label="Search" keyName="/" onClick={onSearch} />
        <IconButton icon="plot" label="Plot the numbers" keyName="p" onClick={onPlot} />
        <IconButton icon="wrap" label="Wrap lines" keyName="w" isPressed={wraps} onClick={onWrap} />
        <CopyButton onCopy={props.onCopy} />
        <a class="icon-button" href={downloads} download aria-label="Download" title="Download all of it">
          <Icon name="download" />
        </a>
      </div>
    </div>
  );
}

function GoTo({ file, onLine }: ToolbarProps) {
  const typed = useSignal('');
  const problem = useSignal(false);
  const go = async () => {
    const to = destination(typed.value, file.standing.value.bytes);
    problem.value = to === undefined;
    if (to === undefined) return;
    if ('byte' in to) file.jumpTo(to.byte);
    else await onLine(to.line);
  };
  return (
    <input
      class="goto"
      type="text"
      inputMode="text"
      size={9}
      placeholder="line, @byte"
      aria-label="Go to a line, a byte (@4096) or a share (50%)"
      title="Go to a line (1200), a byte (@4096) or a share (50%)   (l)"
      aria-invalid={problem.value}
      value={typed.value}
      onInput={(event) => {
        typed.value = event.currentTarget.value;
        problem.value = false;
      }}
      onKeyDown={(event) => {
        if (event.key === 'Enter') void go();
      }}
    />
  );
}

const SAID_MS = 2_000;

function CopyButton({ onCopy }: Pick<ToolbarProps, 'onCopy'>) {
  const said = useSignal('');
  const copy = async () => {
    said.value = await onCopy();
    setTimeout(() => {
      said.value = '';
    }, SAID_MS);
  };
  return (
    <>
      <IconButton
        icon="copy"
        label="Copy the chosen lines, or those on the screen"
        keyName="c"
        onClick={() => void copy()}
      />
      <span class="said" role="status">
        {said.value}
      </span>
    </>
  );
}
