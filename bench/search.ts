/** `agent grep -c` over the mirrors of a hundred tasks, 10 million lines, against `grep` and `rg`. */
import fs from 'node:fs';
import path from 'node:path';
import { textOf } from './growth.ts';
import type { Figures, Goal, Measurement } from './measurement.ts';
import { OUR_NODE_ARGS, run } from './processes.ts';

const AGENT = path.join(import.meta.dirname, '../../dist/cli/main.js');
const FILES = 100;

/** Whatever the environment of the benchmark asks for: FORCE_COLOR colours what is not a terminal, too. */
const PLAIN = { LC_ALL: 'C.UTF-8', NO_COLOR: '1', FORCE_COLOR: '0' };

/** By figure: the pattern, in the syntax of both, and what it stands for. */
const PATTERNS: Readonly<Record<string, readonly [pattern: string, what: string]>> = {
  literalSeconds: ['CUDA out of memory', 'a literal that one line of each file has'],
  everySeconds: ['residual', 'a literal that every line has'],
  expressionSeconds: ['[0-9][eE][-+][0-9]', 'an expression without a literal, which every line matches'],
};

/** Runs a search for each pattern. @throws Error if the counts of a side differ from those of an earlier one */
function sideOf(command: readonly string[], files: readonly string[], counts: Map<string, string>) {
  return async (): Promise<Figures> => {
    const figures: Record<string, number> = {};
    for (const [figure, [pattern]] of Object.entries(PATTERNS)) {
      const [program = '', ...args] = [...command, '-c', pattern, ...files];
      const { figures: used, stdout } = await run(program, args, { env: PLAIN });
      const found = stdout.replaceAll(/^.*:/gm, '');
      const before = counts.get(pattern) ?? found;
      if (before !== found) {
        const [first, other] = [before, found].map((text) => JSON.stringify(text.slice(0, 200)));
        throw new Error(`${program} counts other lines: ${pattern}: ${other} instead of ${first}`);
      }
      counts.set(pattern, found);
      figures[figure] = used.seconds;
    }
    return figures;
  };
}

export const searchOfMirrors: Measurement = {
  name: 'search',
  needs: ['grep', 'rg'],
  goals: Object.entries(PATTERNS).flatMap(([figure, [, what]]) =>
    ['grep', 'rg'].map(
      (peer): Goal => ({
        what: `agent grep -c over 1 GiB in ${FILES} mirrors against ${peer} -c: ${what}`,
        ...{ kind: 'ratio', figure, ours: 'agent', peer, atMost: 1.5 },
      }),
    ),
  ),
  prepare: async ({ directory, quick }) => {
    const bytes = (quick ? 64 : 1024) * 2 ** 20;
    const text = `${textOf(0, Math.floor(bytes / FILES))} CUDA out of memory\n`;
    const files = Array.from({ length: FILES }, (_, task) => {
      const live = path.join(directory, 'mirror/501/live', String(task + 1));
      fs.mkdirSync(live, { recursive: true });
      fs.writeFileSync(path.join(live, 'stdout.log'), text);
      return path.join(live, 'stdout.log');
    });
    const config = {
      service: { fileTransferUrl: 'https://m.example.org/x', namespace: 'urn:x', baseUrl: 'https://m.example.org' },
      auth: { username: 'alice', passwordFile: 'password' },
      mirror: { directory: 'mirror' },
      state: { directory: 'state' },
    };
    const configFile = path.join(directory, 'config.yaml');
    fs.writeFileSync(configFile, JSON.stringify(config));
    const counts = new Map<string, string>();
    const agent = [process.execPath, ...OUR_NODE_ARGS, AGENT, 'grep', '--config', configFile];
    return {
      sides: {
        agent: sideOf(agent, [], counts),
        grep: sideOf(['grep', '-E'], files, counts),
        rg: sideOf(['rg', '--with-filename', '--include-zero'], files, counts),
      },
      close: async () => {},
    };
  },
};
