/** Comments cite docs/dev/soap.md, docs/dev/servers.md and docs/dev/rest.md by section: it has to be there, and no other source is cited. */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DOCUMENTS = ['soap', 'servers', 'rest'] as const;

/** Documents that are not in the repository, by the words with which they were cited. */
const ABSENT = [
  /\b(?:field|soap|service|rest|fleet|predict|house)[ ]notes?\b/gi,
  /\bspec(?:\.md\b|s?[ ]\d|-like\b)/gi,
  /\b(?:the|of)[ ]spec\b/gi,
  /\bdesign\.md\b/gi,
];

/** `docs/dev/servers.md 1.2`, `docs/dev/servers.md 1.2, 1.3 and 4`; within a document `servers.md 1.2`. */
const CITATION = /\b(soap|servers|rest)\.md(?: ((?:\d+(?:\.\d+)*)(?:(?:, | and | to )\d+(?:\.\d+)*)*))?/g;
/** Within one of the documents, another section of itself: `(1.2)`, `: 5.`, `1.7, 4.3`. */
const WITHIN = /\((\d{1,2}(?:\.\d+)*(?:[,;] \d{1,2}(?:\.\d+)*)*)\)/g;

interface Citation {
  readonly document: string;
  /** Empty if the document as a whole is cited. */
  readonly section: string;
}

/** Comments as running text: what goes on in the next line is one text with it. */
const unwrapped = (text: string) => text.replaceAll(/\n[ \t]*(?:\*(?!\/)|\/\/|#)?[ \t]*/g, ' ');

function citationsIn(text: string): Citation[] {
  return [...unwrapped(text).matchAll(CITATION)].flatMap(([, document = '', sections = '']) =>
    sections.split(/, | and | to /).map((section) => ({ document, section })),
  );
}

const absentIn = (text: string) => ABSENT.flatMap((words) => unwrapped(text).match(words) ?? []);

const read = (file: string) => fs.readFileSync(path.join(ROOT, file), 'utf8');
const sectionsOf = (document: string) =>
  new Set(
    [...read(`docs/dev/${document}.md`).matchAll(/^#{2,3} (\d+(?:\.\d+)*)\.? /gm)].map(([, number = '']) => number),
  );
const sections = new Map(DOCUMENTS.map((document) => [document as string, sectionsOf(document)]));
const isThere = ({ document, section }: Citation) => section === '' || sections.get(document)?.has(section) === true;

/** Text files of the repository that people wrote. */
const files = ['src', 'simulator', 'test', 'bench', 'scripts', 'docs', 'systemd', '.'].flatMap((folder) =>
  fs
    .readdirSync(path.join(ROOT, folder), { recursive: folder !== '.', encoding: 'utf8' })
    .map((file) => path.join(folder, file))
    .filter((file) => /\.(?:tsx?|mjs|js|md|yaml|service|sh|py|php|1)$/.test(file) && !file.includes('node_modules')),
);

describe('the reading of citations', () => {
  it('sees them over line ends, one or several at a time', () => {
    const text =
      '/**\n * A (docs/dev/servers.md 1.2, 4 and\n * 5.1); docs/dev/soap.md\n * 2.\n */\n// docs/dev/servers.md: all';
    expect(citationsIn(text).map(({ document, section }) => `${document} ${section}`)).toEqual([
      ...['servers 1.2', 'servers 4', 'servers 5.1', 'soap 2', 'servers '],
    ]);
  });

  it('sees what cites documents that are not here', () => {
    const text = ['field', 'notes 3;\n * soap', 'notes; spec', '2.1; names of the', 'spec'].join(' ');
    expect(absentIn(text)).toHaveLength(4);
  });

  it('finds the sections of each document', () => {
    for (const document of DOCUMENTS) expect(sections.get(document)?.size, document).toBeGreaterThan(10);
    expect(isThere({ document: 'servers', section: '1.2' })).toBe(true);
    expect(isThere({ document: 'rest', section: '4.3' })).toBe(true);
    expect(isThere({ document: 'servers', section: '1.99' })).toBe(false);
  });
});

describe('citations', () => {
  const cited = files
    .map((file) => ({ file, text: read(file) }))
    .filter(({ file }) => file !== 'test/citations.test.ts');

  it('name sections that exist', () => {
    const found = cited.flatMap(({ file, text }) => citationsIn(text).map((citation) => ({ file, ...citation })));
    expect(found.filter(({ file }) => file.startsWith('src')).length).toBeGreaterThan(50);
    expect(found.filter((citation) => !isThere(citation))).toEqual([]);
  });

  it('name no document that is not here', () => {
    expect(cited.flatMap(({ file, text }) => absentIn(text).map((words) => `${file}: ${words}`))).toEqual([]);
  });

  it.each(DOCUMENTS)('within docs/dev/%s.md lead to sections of its own', (document) => {
    const within = [...read(`docs/dev/${document}.md`).matchAll(WITHIN)].flatMap(([, numbers = '']) =>
      numbers.split(/[,;] /),
    );
    expect(within.filter((section) => !isThere({ document, section }))).toEqual([]);
  });
});

describe('links', () => {
  const pages = files.filter((file) => file.endsWith('.md'));
  const anchorsOf = (text: string) =>
    [...text.replaceAll(/```[\s\S]*?```/g, '').matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    );

  it('of documents lead to files and headings that exist', () => {
    const links = pages.flatMap((page) =>
      [...read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)].map(([, to = '', anchor]) => ({
        page,
        target: to === '' ? page : path.join(path.dirname(page), to),
        anchor,
      })),
    );
    expect(links.length).toBeGreaterThan(50);
    const isDead = ({ target, anchor }: (typeof links)[number]) =>
      !fs.existsSync(path.join(ROOT, target)) || (anchor !== undefined && !anchorsOf(read(target)).includes(anchor));
    expect(links.filter(isDead)).toEqual([]);
  });
});
