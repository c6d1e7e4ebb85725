import { describe, expect, it } from 'vitest';
import { kindsNear } from '../../../../src/view/page/file/numbers.ts';
import { TextWindow } from '../../../../src/view/page/file/text-window.ts';

const text = Array.from({ length: 600 }, (_, step) => `step ${step}\nresidual ${step} ${step}.5\n`).join('');
const words = (chosen?: string) =>
  kindsNear(windowOf(text), chosen === undefined ? undefined : text.indexOf(chosen)).map((kind) => kind.words);

function windowOf(content: string): TextWindow {
  const window = new TextWindow();
  window.replace({ start: 0, line: 0, beginsLine: true }, Buffer.from(content));
  return window;
}

describe('the kinds of lines that can be plotted', () => {
  it('are those of the last rows, measured ones first', () => {
    expect(words()).toEqual(['residual #  #', 'step #']);
    const begun = Array.from({ length: 600 }, (_, index) => `warming up ${index}\n`).join('');
    expect(kindsNear(windowOf(`${begun}${text}`), undefined).map((kind) => kind.words)).toEqual([
      'residual #  #',
      'step #',
    ]);
  });

  it.each(['step 0\n', 'step 300\n', 'step 599\n'])('have that of a chosen line first: %j', (line) => {
    expect(words(line)).toEqual(['step #', 'residual #  #']);
  });

  it('are there for a chosen line that is the first one of what was loaded', () => {
    expect(kindsNear(windowOf('a 1\na 2\n'), 0)).toEqual([{ words: 'a #', byte: 4 }]);
  });

  it('are those of the last rows where the chosen line is not here any more', () => {
    const window = windowOf(text);
    window.replace({ start: 9_000_000, line: undefined, beginsLine: true }, Buffer.from('b 1\nb 2\n'));
    expect(kindsNear(window, 7)).toEqual([{ words: 'b #', byte: 9_000_004 }]);
  });

  it('are none where no two lines are alike', () => {
    expect(kindsNear(windowOf('a 1\nb 2\n'), 0)).toEqual([]);
    expect(kindsNear(windowOf(''), undefined)).toEqual([]);
  });
});
