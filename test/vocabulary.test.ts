/**
 * Words that docs/dev/glossary.md replaced do not come back: in documents, and in the comments and messages of the source.
 * Identifiers are not checked.
 */
import fs from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** A replaced word as a whole-word pattern, and what to write. */
const REPLACED: readonly (readonly [pattern: string, write: string])[] = [
  ['told|tells?|telling', 'reports, returns, logs'],
  ['said|says?|saying', 'reports, logs, shows'],
  ['knows?|knew|believes?|hears?', 'detects, assumes, receives'],
  ['nobody|somebody|anybody|whoever', 'the actor: the agent, another process, the operator'],
  ['(?:out )?of which', 'a new sentence'],
  ['standings?', 'health, snapshot, cursor'],
  ['(?:hold|holds|held|holding)(?: \\w+)? against', 'compare'],
  ['habits?', 'server capability, server quirk'],
  ['(?:a|an|the|each|every|this|one|last|next|first|second) looks?', 'poll, refresh, tick, stat, request'],
  ['visits?', 'poll, complete pass, slot'],
  ['sightings?', 'debounced symptom'],
  ['troubles?', 'error, degraded'],
  ['heart', 'engine'],
  ['shut in', 'sandboxed'],
  ['(?:takes?|took|taken) up', 'acquire'],
  ['(?:gives?|gave|given) back', 'release'],
  ['hand(?:s|ed|ing)? over', 'hand off'],
  ['fulfils?|fulfilled|fulfilment', 'execute'],
  ['committed positions?', 'committed offset'],
];

/** Where a replaced word is the right one: the file, words around it, and why. */
const EXCEPTIONS: readonly (readonly [file: string, words: string, reason: string])[] = [
  ['src/fleet/upkeep.ts', '{s}.habits', 'the name of a table in the database of a fleet'],
  ['simulator/control.ts', 'habits', 'a name in the control interface of the sandbox'],
];

interface Text {
  readonly file: string;
  readonly text: string;
}

/** What people wrote in a document: no code, no output of the program, no titles of tests, no addresses of links. */
function proseOf(markdown: string): string {
  return markdown
    .replace(/\n## Replaced words\n[\s\S]*?(?=\n## )/, '')
    .replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')
    .replaceAll(/`[^`]*`(?:,?\s+"[^"]*")*/g, '``')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/\s+/g, ' ');
}

const PAGES = [
  ...['README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md'],
  ...fs
    .readdirSync(`${ROOT}docs`, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

const documents = (): Text[] =>
  [...PAGES, 'CHANGELOG.md', 'bench/RESULTS.md'].map((file) => ({
    file,
    text: proseOf(fs.readFileSync(ROOT + file, 'utf8')),
  }));

/** Files that operators read whole: their comments and texts. */
const operatorsFiles = (): Text[] =>
  ['config.example.yaml', 'docs/alerts.yaml', ...fs.readdirSync(`${ROOT}systemd`).map((name) => `systemd/${name}`)].map(
    (file) => ({ file, text: proseOf(fs.readFileSync(ROOT + file, 'utf8').replaceAll(/^\s*#/gm, '')) }),
  );

/**
 * The comments of a source file, and its texts for people: of more than one word, in quotes or between tags. A value
 * within a text counts as one word.
 */
function proseOfSource(source: string): string {
  const lines = source.split('\n').map((line) => {
    const comment = /^\s*(?:\/\*\*?|\*|\/\/) ?(.*)$/.exec(line)?.[1];
    if (comment !== undefined) return comment.replace(/ ?\*\/$/, '').replaceAll(/`[^`]*`/g, '``');
    const texts = line.replaceAll(/\$\{[^}]*\}/g, 'x').match(/'[^']*'|"[^"]*"|`[^`]*`|>[^<>{}=;]+</g) ?? [];
    return texts.filter((text) => text.slice(1, -1).trim().includes(' ')).join(' | ');
  });
  return lines.join(' ').replaceAll(/\s+/g, ' ');
}

const sourcesIn = (folder: string) => (): Text[] =>
  fs
    .readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => ({
      file: `${folder}/${name}`,
      text: proseOfSource(fs.readFileSync(`${ROOT}${folder}/${name}`, 'utf8')),
    }));

const TEXTS: readonly (readonly [kind: string, texts: () => Text[]])[] = [
  ['documents', documents],
  ['files of operators', operatorsFiles],
  ['src', sourcesIn('src')],
  ['simulator', sourcesIn('simulator')],
];

/** Each replaced word in a text, with the words around it and what to write. */
function replacedIn(text: string): string[] {
  return REPLACED.flatMap(([pattern, write]) =>
    [...text.matchAll(new RegExp(`.{0,40}\\b(?:${pattern})\\b.{0,40}`, 'gi'))].map(
      ([around]) => `"${around}": write ${write}`,
    ),
  );
}

describe('the check of words', () => {
  it('finds whole words in prose alone', () => {
    const text = proseOf('It tells. Untold. `tells` and `test/a.test.ts` "says this". [x](told.md)\n```\nsaid\n```\n');
    expect(replacedIn(text)).toEqual([expect.stringContaining('It tells')]);
    expect(replacedIn('Takes a look; the result was held against it, handed over.')).toHaveLength(3);
    expect(replacedIn('It looks for files and holds a lock.')).toEqual([]);
  });

  it('finds them in comments and messages of a source', () => {
    const source = [
      "import { told } from './job-text.ts';",
      '/** It tells the `told` caller. */',
      "  // Nobody's.",
      "log.info({ said }, 'it says no'); const name = 'visits';",
      '<Fact word="a">no visits yet</Fact>',
    ].join('\n');
    expect(replacedIn(proseOfSource(source)).map((found) => found.replace(/^.*: write/, 'write'))).toHaveLength(4);
  });
});

describe.each(TEXTS)('replaced words in %s', (_, texts) => {
  it('do not occur, but for named exceptions', () => {
    const allowed = (file: string, found: string) =>
      EXCEPTIONS.some(([where, words]) => where === file && found.includes(words));
    const found = texts().flatMap(({ file, text }) =>
      replacedIn(text)
        .filter((words) => !allowed(file, words))
        .map((words) => `${file}: ${words}`),
    );
    expect(found).toEqual([]);
  });
});

/** Words that are replaced in identifiers, too. */
const REPLACED_PARTS = [
  'told untold tell tells said say says nobody somebody whoever standing visit visits',
  'look looks looked looking most trouble troubled fulfil fulfilled fulfilment',
].flatMap((words) => words.split(' '));
const REPLACED_START = /^(?:LONGEST|SHORTEST|FEWEST)_/;
/** In src alone: the simulated cluster has habits, and jobs that are held as Slurm holds them. */
const REPLACED_IN_SRC = /[Hh]abits?$|HABIT|^(?:is)?[Hh]eld|^HELD|[a-z]Held/;

/** Identifiers that are contracts. */
const CONTRACTS: Readonly<Record<string, string>> = {
  nobody: 'a label of a metric',
  habits: 'a table of the fleet',
  mostJobs: 'a key of rows of older agents, and of SQL of the fleet',
  most_jobs: 'a column of the fleet',
  told_at: 'a former column',
  looked_at: 'a former column',
  next_look_at: 'a former column',
};

/** The identifiers of a source, without its comments and texts; of a template, those of its values. */
function identifiersOf(source: string): string[] {
  const code = source
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/\/\/.*$/gm, '')
    .replaceAll(/'[^'\n]*'|"[^"\n]*"|>[^<>{}=;()]+</g, "''")
    .replaceAll(/`[^`]*`/g, (text) => Array.from(text.matchAll(/\$\{([^}]*)\}/g), ([, value]) => value).join(' '));
  return [...new Set(code.match(/[A-Za-z_$][\w$]*/g) ?? [])];
}

const isReplaced = (identifier: string) =>
  REPLACED_START.test(identifier) ||
  identifier.split(/_|(?<=[a-z0-9])(?=[A-Z])/).some((part) => REPLACED_PARTS.includes(part.toLowerCase()));

/** Sentences and cells of a table in a document. The lead of an item in bold is a sentence of its own. */
function sentencesOf(markdown: string): { readonly sentences: string[]; readonly cells: string[] } {
  const blocks = markdown
    .replace(/\n## Which tests show it\n[\s\S]*$/, '')
    .replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')
    .replaceAll(/`[^`]*`/g, 'x')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll('**', '')
    .split(/\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\. ))/)
    .map((block) => block.replaceAll(/\s+/g, ' ').trim());
  const cells = blocks.filter((block) => block.startsWith('|')).flatMap((row) => row.split('|'));
  const texts = [...cells, ...blocks.filter((block) => !block.startsWith('|'))];
  return { cells, sentences: texts.flatMap((text) => text.split(/(?<=[.!?:;])\s/)) };
}

it('sentences of documents have at most 25 words, cells of tables 40', () => {
  const isLonger = (max: number) => (text: string) => text.split(' ').filter((word) => /\w/.test(word)).length > max;
  const sample = sentencesOf(`**A lead.** ${'word '.repeat(25)}\n| a | ${'b '.repeat(41)} |\n\n${'c\n'.repeat(26)}`);
  expect([sample.cells.filter(isLonger(40)).length, sample.sentences.filter(isLonger(25)).length]).toEqual([1, 2]);
  const found = PAGES.flatMap((file) => {
    const { sentences, cells } = sentencesOf(fs.readFileSync(ROOT + file, 'utf8'));
    return [...sentences.filter(isLonger(25)), ...cells.filter(isLonger(40))].map((text) => `${file}: ${text}`);
  });
  expect(found).toEqual([]);
});

describe('identifiers', () => {
  it('are made of the words of the glossary', () => {
    expect(identifiersOf(`const toldJobs = 'said' + \`most \${at}\`; // tell\n`)).toEqual(['const', 'toldJobs', 'at']);
    expect(['toldJobs', 'MOST_BYTES', 'isTold', 'SAY_MS', 'toldAt'].every(isReplaced)).toBe(true);
    expect(['wantsLook', 'LONGEST_MS', 'mostJobs'].every(isReplaced)).toBe(true);
    expect(['untellable', 'almostDone', 'essay', 'LOOKAHEAD'].some(isReplaced)).toBe(false);
    const found = ['src', 'simulator'].flatMap((folder) =>
      fs
        .readdirSync(ROOT + folder, { recursive: true, encoding: 'utf8' })
        .filter((name) => /\.tsx?$/.test(name))
        .flatMap((name) =>
          identifiersOf(fs.readFileSync(`${ROOT}${folder}/${name}`, 'utf8'))
            .filter((identifier) => isReplaced(identifier) || (folder === 'src' && REPLACED_IN_SRC.test(identifier)))
            .filter((identifier) => !Object.hasOwn(CONTRACTS, identifier))
            .map((identifier) => `${folder}/${name}: ${identifier}`),
        ),
    );
    expect(found).toEqual([]);
  });

  it('and the names of files are, too', () => {
    const names = fs.readdirSync(`${ROOT}src`, { recursive: true, encoding: 'utf8' });
    expect(isReplaced('told-jobs'.replaceAll('-', '_'))).toBe(true);
    expect(names.filter((name) => isReplaced(name.replaceAll(/[-./]/g, '_')))).toEqual([]);
  });
});

it('each exception is needed', () => {
  const all = TEXTS.flatMap(([, texts]) => texts());
  const unneeded = EXCEPTIONS.filter(
    ([file, words]) =>
      !all.some((text) => text.file === file && replacedIn(text.text).some((found) => found.includes(words))),
  );
  expect(unneeded).toEqual([]);
});
