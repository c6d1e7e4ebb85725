/** The findings of `agent check`, printed step by step, and its exit code. */

import { asJobtailError, EXIT } from '../../errors.ts';
import { printable, printableLines } from '../../printable.ts';
import { pc } from '../show/colours.ts';
import { columnsOf, isUnicode, wrapToColumns } from '../show/terminal.ts';

/** ok: correct. note: information. warning: it works, but may fail soon, or has a disadvantage. */
type Mark = 'ok' | 'note' | 'warning' | 'failure';

export interface Finding {
  readonly mark: Mark;
  readonly text: string;
  readonly hint?: string | undefined;
}

const [OK, NOTE, FAILURE, HINT] = isUnicode() ? ['✓', '·', '✗', '→'] : ['+', '-', 'x', '>'];
const MARKS: Readonly<Record<Mark, string>> = {
  ok: pc.green(OK),
  note: pc.dim(NOTE),
  warning: pc.yellow('!'),
  failure: pc.red(FAILURE),
};
const NAME_COLUMNS = 14;

export const ok = (text: string): Finding => ({ mark: 'ok', text });
export const note = (text: string): Finding => ({ mark: 'note', text });
export const warning = (text: string, hint: string): Finding => ({ mark: 'warning', text, hint });

export class Findings {
  readonly #write: (text: string, mark: Mark) => void;
  /** That of the first failure. */
  exitCode: number = EXIT.ok;
  readonly all: (Finding & { readonly step: string })[] = [];
  #step = '';

  constructor(write: (text: string, mark: Mark) => void) {
    this.#write = write;
  }

  async step(name: string, check: () => Promise<readonly Finding[]> | readonly Finding[]): Promise<boolean> {
    try {
      for (const [index, finding] of (await check()).entries()) this.#print(index === 0 ? name : '', finding);
      return true;
    } catch (thrown) {
      const { message, hint, policy } = asJobtailError(thrown);
      this.#print(name, { mark: 'failure', text: message, hint });
      this.exitCode ||= policy.exitCode;
      return false;
    }
  }

  skip(name: string, why: string): void {
    this.#print(name, note(`not tried: ${why}`));
  }

  #print(name: string, { mark, text, hint }: Finding): void {
    if (name !== '') this.#step = name;
    this.all.push({ step: this.#step, mark, text, hint });
    const indent = ' '.repeat(NAME_COLUMNS + 2);
    const columns = columnsOf();
    const write = (start: string, line: string) => {
      for (const [index, part] of wrapToColumns(line, columns - indent.length).entries())
        this.#write(`${index === 0 ? start : indent}${part}\n`, mark);
    };
    for (const [index, line] of printableLines(text).split('\n').entries())
      write(index === 0 ? `${MARKS[mark]} ${name.padEnd(NAME_COLUMNS)}` : indent, line);
    if (hint !== undefined) write(indent, `${pc.dim(HINT)} ${printable(hint)}`);
  }
}
