// Part of `npm run lint`: what documents state of tests, sections, constants, log events and error codes is true, and the
// words that docs/dev/glossary.md replaced do not come back. Prints each finding in a line; ends with 1 if there is one.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { PERSISTS_MS } from '../src/agent/live/debounce.ts';
import { IDLE_INTERVAL_MS, INTERVAL_MS } from '../src/agent/loop/job-states.ts';
import { MAX_INTERVAL_MS } from '../src/agent/results/ledger.ts';
import * as share from '../src/agent/server-share.ts';
import { WAITS_MS } from '../src/cli/commands/watch.ts';
import { ERROR_POLICIES } from '../src/errors.ts';
import * as readiness from '../src/fleet/agents/readiness.ts';
import { HEARTBEAT_MS } from '../src/http/streams.ts';
import { MAX_RETRY_AFTER_MS } from '../src/remote/http/http-client.ts';
import * as signIn from '../src/remote/signin/sign-in.ts';
import { LONG_BACKLOG_BYTES } from '../src/remote/text/text-source.ts';
import { BUSY_TIMEOUT_MS } from '../src/store/database.ts';
import { TICKET_MS } from '../src/view/proof.ts';
import { logEventsOf } from './log-events.mjs';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const read = (file) => fs.readFileSync(path.join(ROOT, file), 'utf8');
const filesIn = (folder, pattern) =>
  fs
    .readdirSync(path.join(ROOT, folder), { recursive: folder !== '.', encoding: 'utf8' })
    .map((name) => path.join(folder, name))
    .filter((name) => pattern.test(name) && !name.includes('node_modules'));

const findings = [];
const report = (file, finding) => findings.push(`${file}: ${finding}`);

const PAGES = ['README.md', 'CONTRIBUTING.md', 'ARCHITECTURE.md', ...filesIn('docs', /\.md$/)];
const SOURCES = ['src', 'simulator'].flatMap((folder) => filesIn(folder, /\.tsx?$/));

checkEvidence();
checkConstants();
checkFigures();
checkCitations();
checkLinks();
checkEvents();
checkSmallerPackages();
checkWords();
checkSentences();
checkIdentifiers();
if (findings.length > 0) {
  process.stderr.write(`${findings.join('\n')}\n`);
  process.exitCode = 1;
}

/** The items of a list, each in one line. */
function itemsOf(page) {
  const lines = page.replaceAll(/\n {2,}/g, ' ').split('\n');
  return lines.filter((line) => /^(?:\d+\.|-) /.test(line));
}

/** Each guarantee, and each row of the tables of hostile input, names a test that exists. */
function checkEvidence() {
  const [promises, others] = read('docs/guarantees.md').split(/\n(?=## When the raw bytes)/);
  const [tests, hostile] = read('docs/dev/evidence.md').split(/\n(?=## A service that lies|## Mistakes that)/);
  const sections = promises.split(/\n## /).slice(1);
  const guarantees = sections.flatMap((section) =>
    itemsOf(section).map((item) => {
      const [, number, words = ''] = /^(?:(\d+)\.|- \*\*(.+?)\.?\*\*)/.exec(item) ?? [];
      return number === undefined ? words : `${section.slice(0, section.indexOf('\n'))} ${number}`;
    }),
  );
  const items = itemsOf(tests).map((item) => /^- \*\*(.+?):\*\* (.+)$/.exec(item)?.slice(1) ?? [item, '']);
  for (const guarantee of guarantees)
    if (!items.some(([named]) => named === guarantee)) report('docs/dev/evidence.md', `no item for "${guarantee}"`);
  for (const [named] of items)
    if (!guarantees.includes(named)) report('docs/dev/evidence.md', `"${named}" is no guarantee of docs/guarantees.md`);
  const rows = hostile.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| input |'));
  const shownIn = rows.map((row) => [row.slice(2, 60), row.split(' | ').at(-1)]);
  const shown = [...items, ...shownIn, ['guarantees.md', others]];
  for (const [what, shownBy] of shown) {
    const named = [...shownBy.matchAll(/`(test\/[^`]+)`((?:,? "[^"]+")*)/g)];
    if (named.length === 0) report('docs/dev/evidence.md', `"${what}" names no test`);
    for (const [, file, titles] of named) {
      if (!fs.existsSync(ROOT + file)) report('docs/dev/evidence.md', `${file} does not exist (of "${what}")`);
      else
        for (const [, title] of titles.matchAll(/"([^"]+)"/g))
          if (!read(file).includes(`'${title}`) && !read(file).includes(`\`${title}`))
            report('docs/dev/evidence.md', `${file} has no test "${title}"`);
    }
  }
}

/** A document, a phrase with `{}` for a value of the program, and that value. */
function checkConstants() {
  const constants = [
    ['ARCHITECTURE.md', 'a shorter file for {}', time(PERSISTS_MS.shorter)],
    ['docs/guarantees.md', 'still ambiguous after {}, the agent', time(PERSISTS_MS['incomplete-character'])],
    ['docs/guarantees.md', 'has a backlog, and makes no progress for {}, has an error', time(PERSISTS_MS.stuck)],
    ['docs/guarantees.md', 'When a file longer than {} is first copied', `${LONG_BACKLOG_BYTES / 1024} kib`],
    ['docs/guarantees.md', 'The agent waits {} at most, and a date', time(MAX_RETRY_AFTER_MS)],
    ['docs/guarantees.md', 'Each attempt waits {} for the lock', time(BUSY_TIMEOUT_MS)],
    ['docs/dev/evidence.md', '{} at most; a date counts by the server', time(MAX_RETRY_AFTER_MS)],
    ['docs/dev/servers.md', 'one that makes the file shorter has to be seen for {}.', time(PERSISTS_MS.shorter)],
    ['docs/dev/servers.md', 'for its `Retry-After`, up to {}, otherwise', time(MAX_RETRY_AFTER_MS)],
    ['docs/dev/servers.md', 'otherwise for {}, doubling', time(share.FIRST_PAUSE_MS)],
    ['docs/dev/servers.md', 'doubling up to {}. `service.requestsPerMinute`', time(share.MAX_PAUSE_MS)],
    ['docs/dev/servers.md', 'After a fault, no sign-in is sent for {}, then', time(signIn.FIRST_PAUSE_MS)],
    ['docs/dev/servers.md', 'at most {}. After a refusal', time(signIn.MAX_PAUSE_MS)],
    ['docs/dev/servers.md', 'After a refusal, none is sent for {}, then', time(signIn.FIRST_PAUSE_AFTER_REFUSAL_MS)],
    ['docs/dev/servers.md', 'at most {}, unless the file of the secret', time(signIn.MAX_PAUSE_AFTER_REFUSAL_MS)],
    ['docs/dev/servers.md', 'The agent requests the list every {}, or every', time(INTERVAL_MS)],
    ['docs/dev/servers.md', 'or every {} while it follows no job', time(IDLE_INTERVAL_MS)],
    ['docs/results.md', '`results.intervalSeconds`, at most {}', time(MAX_INTERVAL_MS)],
    ['docs/fleet.md', 'the first two must last {}', time(readiness.PERSISTS_MS)],
    ['docs/fleet.md', 'After {} it acquires one job', time(readiness.PAUSES.firstMs)],
    ['docs/fleet.md', 'after each failed trial the pause doubles, up to {}.', time(readiness.PAUSES.maxMs)],
    ['docs/view.md', 'which opens the view once, within {}', time(TICKET_MS)],
    ['docs/view.md', 'a stream sends something every {}', time(HEARTBEAT_MS)],
    ['docs/commands.md', 'waits up to {} for the first tasks', time(WAITS_MS)],
  ];
  for (const [document, phrase, value] of constants) {
    const values = filledIn(document, phrase, '[\\w.]+(?: (?:s|seconds?|min|minutes?|h|hours?|KiB)\\b)?').map(
      normalized,
    );
    if (values.join() !== value) report(document, `"${phrase}" is ${value} in the program, here "${values.join()}"`);
  }
}

/** What a document has in the place of `{}` of a phrase. */
function filledIn(document, phrase, value) {
  const text = unwrapped(read(document)).replaceAll(/\s+/g, ' ');
  const [before, after] = phrase.split('{}').map((words) => words.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return [...text.matchAll(new RegExp(`${before}(${value})${after}`, 'g'))].map(([, found]) => found);
}

/** A document, a phrase with `{}` for a figure of the last run in bench/RESULTS.md, its row there, and which number of the row. */
function checkFigures() {
  const quiet = 'a poll of a quiet job with 4 files, against a shell loop of curl: processor time';
  const growing = '100 jobs growing by 10 KB/s, line by line, against `ssh host tail -F` for each: processor time';
  const start = 'start with 10,000 watched jobs and 40,000 files: first poll';
  const files = '400 results of 20 KB, a round trip of 100 ms, against';
  const idle = 'private memory of an agent that follows nothing, against `node` that waits';
  const ten = 'private memory of an agent with 10 quiet jobs, against `node` that waits';
  const thousand = '1,000 such jobs, all polled within 10 s > the same: memory';
  const tenThousand = `${start} > the same, until all were polled: memory`;
  const figures = [
    ['README.md', 'round trip of 100 ms | | {} s |', `${files} \`rsync\` over ssh`, 1],
    ['README.md', '| {} s | 3.', `${files} \`curl --parallel-max 16\``, 1],
    ['README.md', '2.77 s | {} s |', `${files} \`rsync\` over ssh`, 0],
    ['docs/sizing.md', 'four live files | {} ms of processor', quiet, 0],
    ['docs/sizing.md', '100 of them a second take {} %', growing, 0],
    ['docs/sizing.md', '4,000 live files | {} MB |', thousand, 0],
    ['docs/sizing.md', 'all of them polled | {} MB |', tenThousand, 0],
    ['docs/sizing.md', 'until the first poll | {} s |', start, 0],
    ['docs/gateway.md', 'private memory, without jobs | {} MB', idle, 0],
    ['docs/gateway.md', 'with 10 quiet jobs | {} MB', ten, 0],
    ['systemd/agent.service', 'docs/sizing.md: {} to', thousand, 0],
    ['systemd/agent.service', 'to {} MB), so', tenThousand, 0],
    ['systemd/agent@.service', 'docs/sizing.md: {} to', thousand, 0],
    ['systemd/agent@.service', 'to {} MB), so', tenThousand, 0],
  ];
  const rows = new Map();
  let above = '';
  for (const [, what, cell] of read('bench/RESULTS.md').matchAll(
    /^\| (.+?) \| ([\d.][^|]*) \| [^|]+ \| (?:yes|no) \|$/gm,
  )) {
    const isMore = what.startsWith('the same');
    if (!isMore) above = what;
    rows.set(isMore ? `${above} > ${what}` : what, cell);
  }
  for (const [document, phrase, row, which] of figures) {
    const figure = rows.get(row)?.match(/[\d.]+/g)?.[which];
    if (figure === undefined) report('bench/RESULTS.md', `has no row "${row}", which ${document} cites`);
    else {
      const [found] = filledIn(document, phrase, '[\\d.]+');
      const decimals = found?.split('.')[1]?.length ?? 0;
      if (found !== Number(figure).toFixed(decimals))
        report(document, `"${phrase}" is ${figure} in bench/RESULTS.md, here "${found}"`);
    }
  }
}

/** A time as documents write it: `30 s`, `5 min`, `1 h`. */
function time(ms) {
  if (ms % 3_600_000 === 0) return `${ms / 3_600_000} h`;
  return ms % 60_000 === 0 ? `${ms / 60_000} min` : `${ms / 1000} s`;
}

/** `ten seconds`, `An hour` and `30 seconds` as `10 s`, `1 h` and `30 s`. */
function normalized(words) {
  const numbers = ['zero', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'];
  const [number, unit = ''] = words.toLowerCase().replace(/^an? /, 'one ').split(' ');
  const at = numbers.indexOf(number);
  return `${at < 0 ? number : at} ${unit.replace(/^(s|min|h)[a-z]*$/, '$1')}`.trim();
}

/** Comments as running text: what goes on in the next line is one text with it. */
function unwrapped(text) {
  return text.replaceAll(/\n[ \t]*(?:\*(?!\/)|\/\/|#)?[ \t]*/g, ' ');
}

/** Comments cite docs/dev/{soap,servers,rest}.md by section: it has to be there, and no other source is cited. */
function checkCitations() {
  const sectionsOf = (document) => {
    const titles = read(`docs/dev/${document}.md`).matchAll(/^#{2,3} (\d+(?:\.\d+)*)\.? /gm);
    return new Set([...titles].map(([, number]) => number));
  };
  const sections = new Map(['soap', 'servers', 'rest'].map((document) => [document, sectionsOf(document)]));
  const requireSection = (file, document, section) => {
    if (!sections.get(document).has(section)) report(file, `docs/dev/${document}.md has no section ${section}`);
  };
  // `docs/dev/servers.md 1.2, 1.3 and 4`; within a document another section of itself: `(1.2)`.
  const citation = /\b(soap|servers|rest)\.md ((?:\d+(?:\.\d+)*)(?:(?:, | and | to )\d+(?:\.\d+)*)*)/g;
  const absent = /\b(?:(?:field|soap|service|rest|fleet|predict|house)[ ]notes?|spec\.md|design\.md)\b/gi;
  const folders = ['src', 'simulator', 'test', 'bench', 'docs', 'systemd', '.'];
  for (const file of folders.flatMap((folder) => filesIn(folder, /\.(?:tsx?|mjs|md|yaml|service|sh|py|php|1)$/))) {
    const text = unwrapped(read(file));
    for (const [, document, named] of text.matchAll(citation))
      for (const section of named.split(/, | and | to /)) requireSection(file, document, section);
    for (const words of text.match(absent) ?? []) report(file, `cites "${words}"`);
  }
  for (const document of sections.keys())
    for (const [, numbers] of read(`docs/dev/${document}.md`).matchAll(
      /\((\d{1,2}(?:\.\d+)*(?:[,;] \d{1,2}(?:\.\d+)*)*)\)/g,
    ))
      for (const section of numbers.split(/[,;] /)) requireSection(`docs/dev/${document}.md`, document, section);
}

/** Links of documents lead to files and headings that exist, those of packages to files of packages. */
function checkLinks() {
  const anchorsOf = (text) =>
    [...text.replaceAll(/```[\s\S]*?```/g, '').matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
      title
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
        .trim()
        .replaceAll(' ', '-'),
    );
  const packed = JSON.parse(read('package.json')).files;
  const isPacked = (file) => packed.some((one) => file === one || file.startsWith(`${one}/`));
  for (const page of [...filesIn('.', /\.md$/), ...filesIn('docs', /\.md$/), ...filesIn('bench', /\.md$/)])
    for (const [, to, anchor] of read(page).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)) {
      const target = to === '' ? page : path.join(path.dirname(page), to);
      const isThere = fs.existsSync(ROOT + target);
      if (isPacked(page) && !isPacked(target)) report(page, `the link ${to} leads to a file that no package contains`);
      if (!isThere || (anchor !== undefined && !anchorsOf(read(target)).includes(anchor)))
        report(page, `the link ${to}${anchor === undefined ? '' : `#${anchor}`} leads nowhere`);
    }
}

/** docs/dev/events.md lists each log event with its levels and fields, docs/troubleshooting.md each error code with its exit code. */
function checkEvents() {
  const page = read('docs/dev/events.md');
  const words = (cell) => cell.replaceAll('`', '').split(', ').filter(Boolean);
  const rows = [...page.matchAll(/^\| `([^`]+)` \| ([a-z, ]+) \| ([^|]*?) ?\| [^|]+ \|$/gm)];
  const listed = new Map(rows.map(([, message, ...cells]) => [message, cells.map((cell) => new Set(words(cell)))]));
  // What is only passed on has no words of its own: its words are found where they are passed.
  const events = logEventsOf(`${ROOT}src`).filter(({ message }) => /[a-z]/.test(message.replaceAll('{}', '')));
  for (const { file, message } of events) {
    if (message.includes('{}') || !/^(?:[a-z]|EndFileTransfer )/.test(message))
      report(`src/${file}`, `the log event "${message}" is no fixed phrase in lower case`);
    if (!listed.has(message)) report('docs/dev/events.md', `"${message}" of src/${file} is missing`);
  }
  const isWithin = (some, all) => [...some].every((one) => all.has(one));
  for (const [message, [levels, fields]] of listed) {
    const found = events.filter((event) => event.message === message);
    if (found.length === 0) report('docs/dev/events.md', `nothing logs "${message}"`);
    const inSource = new Set(found.flatMap(({ level }) => words(level)));
    // Where the source computes the level, an event may have one of them.
    const isComputed = found.some(({ level }) => level.includes(','));
    if (!isWithin(levels, inSource) || (!isComputed && !isWithin(inSource, levels)))
      report('docs/dev/events.md', `"${message}" has the levels ${[...inSource].join(', ')} in the source`);
    const named = new Set(found.flatMap((event) => event.fields));
    const isOpen = found.some(({ hasMoreFields }) => hasMoreFields);
    if (!isWithin(named, fields) || (!isOpen && !isWithin(fields, named)))
      report('docs/dev/events.md', `"${message}" has the fields ${[...named].join(', ')} in the source`);
  }
  const awaited = /(?:stderr|log|outputOf)\([^()]*\)\.includes\('([^']+)'\)/g;
  for (const file of ['bench', 'simulator'].flatMap((folder) => filesIn(folder, /\.ts$/)))
    for (const [, phrase] of read(file).matchAll(awaited))
      if (!listed.has(phrase)) report(file, `waits for "${phrase}", which docs/dev/events.md does not list`);
  const codes = [...read('docs/troubleshooting.md').matchAll(/^\| `([a-z-]+)` \| ([0-9]+) \| /gm)].map(
    ([, code, exit]) => `${code} ${exit}`,
  );
  const policies = Object.entries(ERROR_POLICIES).map(([code, { exitCode }]) => `${code} ${exitCode}`);
  for (const code of policies)
    if (!codes.includes(code)) report('docs/troubleshooting.md', `the error code ${code} is missing`);
  for (const code of codes)
    if (!policies.includes(code)) report('docs/troubleshooting.md', `there is no error code ${code}`);
}

/** The smaller undici of the bundle exports what the sources import. */
function checkSmallerPackages() {
  const shrunk = read('scripts/smaller-packages.mjs');
  const exported = [...shrunk.matchAll(/exports\.(\w+) = require/g)].map(([, name]) => name);
  for (const file of SOURCES)
    for (const [, names] of read(file).matchAll(/^import \{([^}]*)\} from 'undici'/gm))
      for (const name of names.split(',').map((each) => each.trim()))
        if (name !== '' && !name.startsWith('type ') && !exported.includes(name))
          report('scripts/smaller-packages.mjs', `does not export ${name}, which ${file} imports`);
}

/** Words that the glossary replaced do not come back in documents, comments and messages. */
function checkWords() {
  /** A replaced word as a whole-word pattern, and what to write. */
  const replaced = [
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
  ].map(([pattern, write]) => [new RegExp(`\\b(?:${pattern})\\b`, 'gi'), write]);
  /** Where a replaced word is the right one: a table of the database of the fleet. */
  const exceptions = [['src/fleet/rows/copy.ts', '{s}.habits']];
  const unneeded = new Set(exceptions);
  const check = (file, text) => {
    for (const [pattern, write] of replaced)
      for (const { 0: found, index } of text.matchAll(pattern)) {
        const around = text.slice(Math.max(0, index - 40), index + found.length + 40);
        const allowed = exceptions.find(([where, words]) => where === file && around.includes(words));
        if (allowed === undefined) report(file, `"${around}": write ${write}`);
        else unneeded.delete(allowed);
      }
  };
  for (const file of [...PAGES, 'CHANGELOG.md', 'bench/RESULTS.md']) check(file, proseOf(read(file)));
  for (const file of ['config.example.yaml', 'docs/alerts.yaml', ...filesIn('systemd', /./)])
    check(file, proseOf(read(file).replaceAll(/^\s*#/gm, '')));
  for (const file of SOURCES) check(file, proseOfSource(read(file)));
  for (const [file, words] of unneeded) report(file, `the exception "${words}" of this check is not needed`);
}

/** What people wrote in a document: no code, no output of the program, no titles of tests, no addresses of links. */
function proseOf(markdown) {
  return markdown
    .replace(/\n## Replaced words\n[\s\S]*?(?=\n## )/, '')
    .replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')
    .replaceAll(/`[^`]*`(?:,?\s+"[^"]*")*/g, '``')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/\s+/g, ' ');
}

/** The comments of a source, and its texts of more than one word, in quotes or between tags. */
function proseOfSource(source) {
  const lines = source.split('\n').map((line) => {
    const comment = /^\s*(?:\/\*\*?|\*|\/\/) ?(.*)$/.exec(line)?.[1];
    if (comment !== undefined) return comment.replace(/ ?\*\/$/, '').replaceAll(/`[^`]*`/g, '``');
    const texts = line.replaceAll(/\$\{[^}]*\}/g, 'x').match(/'[^']*'|"[^"]*"|`[^`]*`|>[^<>{}=;]+</g) ?? [];
    return texts.filter((text) => text.slice(1, -1).trim().includes(' ')).join(' | ');
  });
  return lines.join(' ').replaceAll(/\s+/g, ' ');
}

/** Sentences of documents have at most 25 words, cells of tables 40. The lead of an item in bold is a sentence. */
function checkSentences() {
  const countOf = (text) => text.split(' ').filter((word) => /\w/.test(word)).length;
  for (const page of PAGES) {
    const blocks = read(page)
      .replaceAll(/^( *)```[\s\S]*?^\1```$/gm, '')
      .replaceAll(/`[^`]*`/g, 'x')
      .replaceAll(/\]\([^)]*\)/g, ']')
      .replaceAll('**', '')
      .split(/\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\. ))/)
      .map((block) => block.replaceAll(/\s+/g, ' ').trim());
    const cells = blocks.filter((block) => block.startsWith('|')).flatMap((row) => row.split('|'));
    const texts = [...cells, ...blocks.filter((block) => !block.startsWith('|'))];
    for (const cell of cells) if (countOf(cell) > 40) report(page, `a cell of more than 40 words: ${cell}`);
    for (const sentence of texts.flatMap((text) => text.split(/(?<=[.!?:;])\s/)))
      if (countOf(sentence) > 25) report(page, `a sentence of more than 25 words: ${sentence}`);
  }
}

/** Identifiers and names of files are made of the words of the glossary. */
function checkIdentifiers() {
  const parts = new Set(
    `told untold tell tells said say says nobody somebody whoever standing visit visits look looks looked looking most
     trouble troubled fulfil fulfilled fulfilment`.split(/\s+/),
  );
  // In src alone: the simulated cluster has habits, and jobs that are held as Slurm holds them.
  const inSrc = /[Hh]abits?$|HABIT|^(?:is)?[Hh]eld|^HELD|[a-z]Held/;
  // A label of a metric; a table of the fleet; a key of rows of older agents, columns and former columns.
  const contracts = ['nobody', 'habits', 'mostJobs', 'most_jobs', 'told_at', 'looked_at', 'next_look_at'];
  const isReplaced = (name) =>
    /^(?:LONGEST|SHORTEST|FEWEST)_/.test(name) ||
    name.split(/[_./-]|(?<=[a-z0-9])(?=[A-Z])/).some((part) => parts.has(part.toLowerCase()));
  for (const file of SOURCES) {
    const code = read(file)
      .replaceAll(/\/\*[\s\S]*?\*\//g, '')
      .replaceAll(/\/\/.*$/gm, '')
      .replaceAll(/'[^'\n]*'|"[^"\n]*"|>[^<>{}=;()]+</g, "''")
      .replaceAll(/`[^`]*`/g, (text) => Array.from(text.matchAll(/\$\{([^}]*)\}/g), ([, value]) => value).join(' '));
    const isSrc = file.startsWith('src/');
    for (const name of new Set(code.match(/[A-Za-z_$][\w$]*/g)))
      if (!contracts.includes(name) && (isReplaced(name) || (isSrc && inSrc.test(name))))
        report(file, `the identifier ${name} has a word that docs/dev/glossary.md replaces`);
    if (isSrc && isReplaced(file)) report(file, 'its name has a word that docs/dev/glossary.md replaces');
  }
}
