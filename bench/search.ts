/**
 * Searches of mirrors: `agent grep` against `grep`. A hundred mirrors with 10 million
 * lines, of which the lines that match are counted; and one mirror as large as all of them, whose last line is found.
 */
import fs from 'node:fs';
import path from 'node:path';
import { textOf } from './growth.ts';
import type { Figures, Goal, Measurement, Side } from './measurement.ts';
import { OUR_NODE_ARGS, run } from './processes.ts';
import { AgentPlace } from './watching.ts';

const AGENT = path.join(import.meta.dirname, '../../dist/cli/main.js');
const FILES = 100;
const MARK = 'CUDA out of memory';

/** Whatever the environment of the benchmark asks for: FORCE_COLOR colours what is not a terminal, too. */
const PLAIN = { LC_ALL: 'C.UTF-8', NO_COLOR: '1', FORCE_COLOR: '0' };

/** By figure: the pattern, in the syntax of all, and what it stands for. */
const PATTERNS: Readonly<Record<string, readonly [pattern: string, what: string]>> = {
  literalSeconds: [MARK, 'a literal that one line of each file has'],
  everySeconds: ['residual', 'a literal that every line has'],
  expressionSeconds: ['[0-9][eE][-+][0-9]', 'an expression without a literal, which every line matches'],
};

/** Returns the seconds it took, and how many lines it found. */
type Search = (pattern: string) => Promise<{ readonly seconds: number; readonly lines: number }>;

const sumOf = (numbers: Iterable<RegExpMatchArray>) =>
  [...numbers].reduce((sum, [, number]) => sum + Number(number), 0);

const byCommand =
  (command: readonly string[], files: readonly string[]): Search =>
  async (pattern) => {
    const [program = '', ...args] = [...command, '-c', pattern, ...files];
    const { figures, stdout } = await run(program, args, { env: PLAIN });
    return { seconds: figures.seconds, lines: sumOf(stdout.matchAll(/(\d+)$/gm)) };
  };

/** A place with so many mirrors, each with these pieces of text. */
function placeOf(directory: string, mirrors: number, pieces: readonly string[]) {
  const place = new AgentPlace(directory);
  place.prepare({ url: 'http://127.0.0.1:9' }, { jobs: mirrors, files: ['stdout'], requestsPerMinute: null });
  const files = place.mirrorsOfStdout(mirrors);
  for (const file of files) {
    fs.mkdirSync(path.dirname(file), { recursive: true });
    for (const piece of pieces) fs.appendFileSync(file, piece);
  }
  return { place, files };
}

const row = (figure: string, what: string): Goal => ({
  what: `agent grep -c ${what}`,
  ...{ kind: 'ratio', figure, ours: 'agent', peer: 'grep', atMost: 1.5 },
});

export const searchOfMirrors: Measurement = {
  name: 'search',
  needs: ['grep'],
  goals: [
    ...Object.entries(PATTERNS).map(([figure, [, what]]) =>
      row(figure, `over 1 GiB in ${FILES} mirrors against grep -c: ${what}`),
    ),
    row('endSeconds', 'in one mirror of 1 GiB, whose last line matches, against grep -c'),
  ],
  prepare: async ({ directory, quick }) => {
    const text = textOf(0, Math.floor(((quick ? 64 : 1024) * 2 ** 20) / FILES));
    const end = ` ${MARK}\n`;
    const many = placeOf(path.join(directory, 'many'), FILES, [text, end]);
    const one = placeOf(path.join(directory, 'one'), 1, [...Array.from({ length: FILES }, () => text), end]);
    const [big = ''] = one.files;
    const counts = new Map<string, number>();
    /** @throws Error if a side finds other lines than an earlier one */
    const side =
      (inMany: Search, inOne: Search): Side =>
      async () => {
        const figures: Record<string, number> = {};
        const measure = async (figure: string, search: Search, pattern: string) => {
          const { seconds, lines } = await search(pattern);
          if (lines === 0 || (counts.get(figure) ?? lines) !== lines)
            throw new Error(`${figure}: ${lines} lines instead of ${counts.get(figure)}`);
          counts.set(figure, lines);
          figures[figure] = seconds;
        };
        for (const [figure, [pattern]] of Object.entries(PATTERNS)) await measure(figure, inMany, pattern);
        await measure('endSeconds', inOne, MARK);
        return figures satisfies Figures;
      };
    const grep = (place: AgentPlace) =>
      byCommand([process.execPath, ...OUR_NODE_ARGS, AGENT, 'grep', '--config', place.configFile], []);
    const both = (...command: string[]) => side(byCommand(command, many.files), byCommand(command, [big]));
    return {
      sides: {
        agent: side(grep(many.place), grep(one.place)),
        grep: both('grep', '-HE'),
      },
      close: async () => {},
    };
  },
};
