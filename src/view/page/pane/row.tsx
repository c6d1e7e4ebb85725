/** One row of a file: the number of its line, and its text as a terminal would show it. */
import { Component } from 'preact';
import type { WindowRow } from '../file/text-window.ts';
import { coloursOf, decode, pieces, type Run, shown, type TextStyle } from '../text/terminal.ts';
import { levelOf } from '../text/values.ts';

interface RowProps {
  readonly row: WindowRow;
  /** The colours that the rows before leave switched on. */
  readonly coloursBefore: () => string;
  /** From 0; undefined where it is not known. */
  readonly line: number | undefined;
  /** How many states of a progress bar are folded, in words. */
  readonly folded: string;
  readonly isSelected: boolean;
  readonly isFound: boolean;
  readonly onSelect: (start: number, extends_: boolean) => void;
}

const ESCAPE = 0x1b;
/** How far back colours are looked for that are still on. */
const COLOURS_BYTES = 4_096;

export function coloursBefore(rows: readonly WindowRow[], index: number): string {
  let text = '';
  let at = index;
  for (let seen = 0; at-- > 0 && seen < COLOURS_BYTES; ) {
    const { bytes } = rows[at] as WindowRow;
    if (bytes.includes(ESCAPE)) text = decode(bytes) + text;
    seen += bytes.length;
  }
  return coloursOf(text);
}

const SHOWN_PROPS = ['row', 'line', 'folded', 'isSelected', 'isFound'] as const;

export class PaneRow extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    return SHOWN_PROPS.some((key) => next[key] !== this.props[key]);
  }

  override render({ row: { start, isContinued, bytes }, line, onSelect, ...props }: RowProps) {
    const runs = shown(decode(bytes).replace(/\n$/, ''), props.coloursBefore());
    const level = isContinued ? undefined : levelOf(runs.map((run) => run.text).join(''));
    const states = [props.isSelected && 'selected', props.isFound && 'found'];
    const classes = ['row', ...states, level && `level-${level}`];
    return (
      <div class={classes.filter(Boolean).join(' ')} data-continued={isContinued ? '' : undefined}>
        <button
          type="button"
          class="number"
          tabIndex={-1}
          aria-label={line === undefined ? `byte ${start}` : `line ${line + 1}`}
          title={isContinued ? 'the line goes on' : undefined}
          onClick={(event) => onSelect(start, event.shiftKey)}
        >
          {isContinued ? '…' : line === undefined ? `@${start}` : line + 1}
        </button>
        <span class="text" dir="auto">
          {runs.map((run, index) => (
            <Styled key={index} run={run} />
          ))}
        </span>
        {props.folded !== '' && (
          <span class="folded" title="states of a progress bar, which a terminal overwrites">
            {props.folded}
          </span>
        )}
      </div>
    );
  }
}

function Styled({ run: { text, style } }: { run: Run }) {
  const shownPieces = pieces(text).map(({ text: piece, means }, index) =>
    means === undefined ? (
      piece
    ) : (
      <span key={index} class="mark" title={means}>
        {piece}
      </span>
    ),
  );
  return style === null ? (
    <span>{shownPieces}</span>
  ) : (
    <span class={style.decorations.map((name) => `ansi-${name}`).join(' ')} style={coloursIn(style)}>
      {shownPieces}
    </span>
  );
}

const isRgb = (colour: string | null) => colour?.startsWith('rgb(') ?? false;

/** The terminal's sixteen are variables of the style sheet; a bright one is the same as its plain one, except for black. */
function cssOf(colour: string | null): string | undefined {
  if (colour === null || isRgb(colour)) return colour ?? undefined;
  return `var(--${colour.replace(/^ansi-(?:bright-(?!black))?/, '')})`;
}

/** On one of the sixteen, whose shade depends on the theme, text has the ground of the page as its colour unless it is exact. */
function coloursIn({ colour, background }: TextStyle) {
  const isOnNamed = background !== null && !isRgb(background);
  return {
    color: isOnNamed && !isRgb(colour) ? 'var(--surface)' : cssOf(colour),
    backgroundColor: cssOf(background),
    borderRadius: isOnNamed ? '2px' : undefined,
  };
}
