/** One row of a file: the number of its line, and its text as a terminal would show it. */
import { Component } from 'preact';
import { coloursOf, decode, pieces, type Run, shown, type TextStyle } from '../text/terminal.ts';
import { levelOf } from '../text/values.ts';

interface RowProps {
  /** Where it begins in the content. */
  readonly start: number;
  /** While it is the same, bytes of a row only ever grow. */
  readonly era: number;
  readonly bytes: Uint8Array;
  /** What stands before it, as far as colours may reach. */
  readonly before: Uint8Array;
  /** From 0; undefined where it is not known. */
  readonly line: number | undefined;
  /** It goes on with the line of the row before. */
  readonly isContinued: boolean;
  /** Where its bytes begin: after the folded states of a progress bar, which are so many in words. */
  readonly shownFrom: number;
  readonly folded: string;
  readonly isSelected: boolean;
  readonly isFound: boolean;
  readonly onSelect: (start: number, extends_: boolean) => void;
}

const ESCAPE = 0x1b;
const SHOWN_PROPS = [
  ...(['start', 'era', 'line', 'shownFrom', 'folded'] as const),
  ...(['isContinued', 'isSelected', 'isFound'] as const),
];

export class PaneRow extends Component<RowProps> {
  /** In the same era, what has the same length is the same. */
  override shouldComponentUpdate(next: RowProps): boolean {
    const now = this.props;
    const isSame = (key: keyof RowProps) => next[key] === now[key];
    return next.bytes.length !== now.bytes.length || !SHOWN_PROPS.every(isSame);
  }

  override render({ start, bytes, before, line, onSelect, ...row }: RowProps) {
    const text = decode(bytes).replace(/\n$/, '');
    const runs = shown(text, before.includes(ESCAPE) ? coloursOf(decode(before)) : '');
    const level = row.isContinued ? undefined : levelOf(runs.map((run) => run.text).join(''));
    const states = [row.isSelected && 'selected', row.isFound && 'found'];
    const classes = ['row', ...states, level && `level-${level}`];
    return (
      <div class={classes.filter(Boolean).join(' ')} data-continued={row.isContinued ? '' : undefined}>
        <button
          type="button"
          class="number"
          tabIndex={-1}
          aria-label={line === undefined ? `byte ${start}` : `line ${line + 1}`}
          title={row.isContinued ? 'the line goes on' : undefined}
          onClick={(event) => onSelect(start, event.shiftKey)}
        >
          {row.isContinued ? '…' : line === undefined ? `@${start}` : line + 1}
        </button>
        <span class="text" dir="auto">
          {runs.map((run, index) => (
            <Styled key={index} run={run} />
          ))}
        </span>
        {row.folded !== '' && (
          <span class="folded" title="states of a progress bar, which a terminal overwrites">
            {row.folded}
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
