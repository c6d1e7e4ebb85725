/** The findings of `agent check`, printed step by step, and its exit code. */

import { asJobtailError, EXIT } from '../../errors.ts';
import { printable, printableLines } from '../../printable.ts';
import { columnsOf, isUnicode, pc, wrapToColumns } from '../show/terminal.ts';

/** ok: correct. note: information. warning: it works, but may fail soon, or has a disadvantage. */
type Mark = 'ok' | 'note' | 'warning' | 'failure';

export interface Finding {
  readonly mark: Mark;
  readonly text: string;
  readonly hint?: string | undefined;
}

/** By the locale. */
function signsOf(): Readonly<Record<Mark | 'hint', string>> {
  const [good, known, bad, hint] = isUnicode() ? ['✓', '·', '✗', '→'] : ['+', '-', 'x', '>'];
  return { ok: pc.green(good), note: pc.dim(known), warning: pc.yellow('!'), failure: pc.red(bad), hint: pc.dim(hint) };
}

const NAME_COLUMNS = 14;

export const ok = (text: string): Finding => ({ mark: 'ok', text });
export const note = (text: string): Finding => ({ mark: 'note', text });
export const warning = (text: string, hint: string): Finding => ({ mark: 'warning', text, hint });

export const warnIf = (isSo: boolean, text: string, hint: string): Finding[] => (isSo ? [warning(text, hint)] : []);

export function asWarning(thrown: unknown): Finding {
  const { message, hint = '' } = asJobtailError(thrown);
  return warning(message, hint);
}

export interface CheckStep {
  readonly name: string;
  /** The step without whose success this one is left out. */
  readonly needs?: string;
  /** The reason that is printed then. */
  readonly without?: string;
  /** @throws what is a failure, with its remedy */
  ask(): Promise<readonly Finding[]> | readonly Finding[];
}

export class Findings {
  readonly #write: (text: string, mark: Mark) => void;
  /** That of the first failure. */
  exitCode: number = EXIT.ok;
  readonly all: (Finding & { readonly step: string })[] = [];
  readonly #failed = new Set<string>();
  readonly #signs = signsOf();

  constructor(write: (text: string, mark: Mark) => void) {
    this.#write = write;
  }

  /** @throws JobtailError aborted, which is no finding */
  async ask(steps: readonly CheckStep[]): Promise<void> {
    for (const step of steps) {
      const { name, needs = '', without } = step;
      try {
        if (this.#failed.has(needs)) {
          this.#failed.add(name);
          if (without !== undefined) this.#print(name, [note(`not tried: ${without}`)]);
        } else this.#print(name, await step.ask());
      } catch (thrown) {
        const { code, message, hint, policy } = asJobtailError(thrown);
        if (code === 'aborted') throw thrown;
        this.#print(name, [{ mark: 'failure', text: message, hint }]);
        this.#failed.add(name);
        this.exitCode ||= policy.exitCode;
      }
    }
  }

  #print(step: string, findings: readonly Finding[]): void {
    const indent = ' '.repeat(NAME_COLUMNS + 2);
    const columns = columnsOf() - indent.length;
    let name = step;
    for (const { mark, text, hint } of findings) {
      this.all.push({ step, mark, text, hint });
      const remedy = hint === undefined ? [] : [`${this.#signs.hint} ${printable(hint)}`];
      const lines = [...printableLines(text).split('\n'), ...remedy].flatMap((line) => wrapToColumns(line, columns));
      for (const [index, line] of lines.entries())
        this.#write(`${index === 0 ? `${this.#signs[mark]} ${name.padEnd(NAME_COLUMNS)}` : indent}${line}\n`, mark);
      name = '';
    }
  }
}
