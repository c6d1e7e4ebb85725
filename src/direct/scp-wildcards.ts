/**
 * Transfers files by scp whose names a forced command would split or refuse. Each special character is requested as a
 * wildcard, which the other side matches. The true name that arrives identifies the file; other matches are refused
 * before their first byte. scp names a file without its directory: names of missing files separate the directories of a
 * command, and their errors separate the responses.
 */

import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import type { DirectArrival, DirectFile } from '../agent/ports.ts';
import { brokeOff, connectionFailure, lastLine } from './failures.ts';
import {
  CONNECTION_LOST,
  MAX_COMMAND_CHARACTERS,
  MAX_WORDS,
  NO,
  type Reply,
  receiveFile,
  runScp,
  type ScpRecords,
  type ScpRun,
  YES,
} from './scp-session.ts';

/** Limits what a host can send without end: other matches, and errors. */
const MAX_RECORDS = 100_000;
const PLAIN_CHARACTER = /[A-Za-z0-9_./+=:@%,-]/;
/** Forced commands search for these anywhere, also in quotes. */
const REFUSED_IN_QUOTES = /\.\.|[&;|'\p{Cc}\uFFFD]/u;

/** Whether any forced command accepts a path unchanged. */
export const isPlain = (remote: string) => /^[A-Za-z0-9_./+=:@%,-]+$/.test(remote) && !remote.includes('..');

/** Requested words in one directory, whose path is certain (empty, or with a slash at its end). */
interface Group {
  readonly directory: string;
  readonly words: string[];
}

interface Command {
  readonly groups: Group[];
  /** Whether directories with special names are requested, too. */
  readonly isRecursive: boolean;
  readonly quote: "'" | '';
}

/**
 * Transfers files with special names, as far as the forced command allows. Resolves with the reason if scp never
 * answered.
 */
export async function fetchOddNames(files: readonly DirectFile[], run: ScpRun): Promise<string | undefined> {
  const { basePath } = run.request.access;
  // In the protocol, a newline ends a line.
  const wanted = new Map(files.map((file) => [file.parts.join('/'), file]));
  for (const name of wanted.keys()) if (name.includes('\n')) wanted.delete(name);
  let refused: string | undefined;
  const bring = async (commands: readonly Command[]) => {
    for (const command of commands) refused = (await fetchCommand(command, wanted, run)) ?? refused;
  };
  if (isPlain(basePath)) {
    const items = [...wanted.values()].map((file) => wildcardsOf(file, basePath));
    for (const isRecursive of [false, true]) {
      const some = items.filter((item) => item.isRecursive === isRecursive);
      await bring(commandsOf(some, { isRecursive, quote: '' }));
    }
  }
  // If a shell interprets the command again after expanding wildcards, only quotes work.
  const items = [...wanted.values()].map((file) => quotedOf(file, basePath)).filter(isQuotable);
  await bring(commandsOf(items, { isRecursive: false, quote: "'" }));
  return run.works ? undefined : refused;
}

interface Item {
  readonly directory: string;
  readonly words: readonly string[];
}

function quotedOf({ parts }: DirectFile, basePath: string): Item {
  const directory = parts
    .slice(0, -1)
    .map((part) => `${part}/`)
    .join('');
  return { directory, words: [`'${basePath}/${parts.join('/')}'`] };
}

const isQuotable = ({ words }: Item) => words.every((word) => !REFUSED_IN_QUOTES.test(word.slice(1, -1)));

/** The wildcards of a file, or of its first directory with a special name. */
function wildcardsOf({ parts }: DirectFile, basePath: string): Item & { readonly isRecursive: boolean } {
  const odd = parts.findIndex((part) => !isPlain(part));
  const directory = parts
    .slice(0, odd)
    .map((part) => `${part}/`)
    .join('');
  const words = patternsOf(parts[odd] ?? '').map((pattern) => `${basePath}/${directory}${pattern}`);
  return { directory, words, isRecursive: odd < parts.length - 1 };
}

/**
 * A name with a `?` for each special character. A shell counts a character beyond ASCII as one or as several, depending
 * on its locale: both patterns are requested. U+FFFD stands for any bytes.
 */
function patternsOf(name: string): readonly string[] {
  const patternOf = (widthOf: (character: string) => number) => {
    let pattern = '';
    for (const character of name) {
      const isUpwards = character === '.' && pattern.endsWith('.');
      if (character === '\uFFFD') pattern += '*';
      else pattern += PLAIN_CHARACTER.test(character) && !isUpwards ? character : '?'.repeat(widthOf(character));
    }
    return pattern;
  };
  if (name.includes('\uFFFD')) return [patternOf(() => 1).replaceAll(/[?*]{2,}/g, '*')];
  return [...new Set([patternOf(() => 1), patternOf((character) => Buffer.byteLength(character))])];
}

function commandsOf(items: readonly Item[], kind: Pick<Command, 'isRecursive' | 'quote'>): Command[] {
  const directories = new Map<string, Set<string>>();
  for (const { directory, words } of items) {
    const of = directories.get(directory) ?? new Set();
    directories.set(directory, of);
    for (const word of words) of.add(word);
  }
  const commands: Command[] = [];
  let room = { words: 0, characters: 0 };
  for (const [directory, words] of directories) {
    let group: Group | undefined;
    for (const word of words) {
      // A mark is about as long as a word.
      const isNew = commands.length === 0 || room.words < 2 || room.characters < 2 * (word.length + MARK_CHARACTERS);
      if (isNew) {
        commands.push({ ...kind, groups: [] });
        room = { words: MAX_WORDS, characters: MAX_COMMAND_CHARACTERS };
      }
      if (group === undefined || isNew) {
        group = { directory, words: [] };
        commands.at(-1)?.groups.push(group);
        room = { words: room.words - 1, characters: room.characters - word.length - MARK_CHARACTERS };
      }
      group.words.push(word);
      room = { words: room.words - 1, characters: room.characters - Buffer.byteLength(word) - 1 };
    }
  }
  return commands;
}

const MARK_CHARACTERS = 40;

/** Runs one command; received files are removed from `wanted`. Resolves with the reason if the command was refused. */
async function fetchCommand(
  { groups, isRecursive, quote }: Command,
  wanted: Map<string, DirectFile>,
  run: ScpRun,
): Promise<string | undefined> {
  const { basePath, host } = run.request.access;
  const random = randomBytes(8).toString('hex');
  // The blank in it shows whether quotes are interpreted.
  const markOf = (group: number) => `${basePath}/.jobtail${quote === '' ? '-' : ' '}${random}-${group}-`;
  const words = groups.flatMap((group, at) => [`${quote}${markOf(at)}${quote}`, ...group.words]);
  let isUnderstood = false;
  let isLeft = false;
  const converse = async (records: ScpRecords, reply: Reply) => {
    reply(YES);
    const opening = await records.next();
    isUnderstood = opening.kind === 'missing' && opening.message.includes(markOf(0));
    // The other side may still be writing: then a signal ends it, which ssh reports as a lost connection.
    isLeft = !isUnderstood && opening.kind !== 'end';
    if (!isUnderstood) return;
    run.works = true;
    await receiveAll(
      { records, reply },
      { directories: groups.map(({ directory }) => directory), markOf },
      wanted,
      run,
    );
  };
  const { code, stderr } = await runScp([...(isRecursive ? ['-r'] : []), '-f', ...words], run, converse);
  const failure = connectionFailure(stderr, host);
  if (failure !== undefined) throw failure;
  if (code === CONNECTION_LOST && !isLeft) throw brokeOff(stderr, host);
  return isUnderstood ? undefined : lastLine(stderr);
}

interface Marks {
  readonly directories: readonly string[];
  readonly markOf: (group: number) => string;
}

async function receiveAll(
  line: { readonly records: ScpRecords; readonly reply: Reply },
  marks: Marks,
  wanted: Map<string, DirectFile>,
  run: ScpRun,
): Promise<void> {
  const unsure = new UnsureNames(wanted);
  try {
    for await (const { name, bytes } of announced(line, marks, wanted)) {
      const file = wanted.get(name);
      if (file === undefined || unsure.isRepeated(name)) line.reply(NO);
      else if (name.includes('\uFFFD')) {
        if (!(await receiveFile(file, bytes, line, run, (arrival) => unsure.add(name, arrival)))) return;
      } else {
        wanted.delete(name);
        if (!(await receiveFile(file, bytes, line, run))) return;
      }
    }
  } finally {
    await unsure.settle(run);
  }
}

async function* announced(
  { records, reply }: { readonly records: ScpRecords; readonly reply: Reply },
  { directories, markOf }: Marks,
  wanted: ReadonlyMap<string, DirectFile>,
): AsyncGenerator<{ readonly name: string; readonly bytes: number }> {
  const ancestors = new Set(
    [...wanted.values()].flatMap(({ parts }) => parts.map((_, at) => parts.slice(0, at).join('/'))),
  );
  let group = 0;
  const below: string[] = [];
  const nameOf = (last: string) => `${directories[group]}${[...below, last].join('/')}`;
  for (let count = 0; count < MAX_RECORDS; count += 1) {
    const record = await records.next();
    if (record.kind === 'end') return;
    if (record.kind === 'file') yield { name: nameOf(record.name), bytes: record.bytes };
    else if (record.kind === 'directory') {
      const isWanted = ancestors.has(nameOf(record.name));
      if (isWanted) below.push(record.name);
      reply(isWanted ? YES : NO);
    } else if (record.kind === 'up') {
      below.pop();
      reply(YES);
    } else if (group + 1 < directories.length && record.message.includes(markOf(group + 1))) {
      group += 1;
      below.length = 0;
    }
  }
}

/** Files with U+FFFD in their names, which several names on the other side can become: accepted if only one came. */
class UnsureNames {
  readonly #wanted: Map<string, DirectFile>;
  readonly #arrivals = new Map<string, DirectArrival>();
  readonly #repeated = new Set<string>();

  constructor(wanted: Map<string, DirectFile>) {
    this.#wanted = wanted;
  }

  isRepeated(name: string): boolean {
    if (this.#arrivals.has(name)) this.#repeated.add(name);
    return this.#repeated.has(name);
  }

  async add(name: string, arrival: DirectArrival): Promise<void> {
    this.#arrivals.set(name, arrival);
  }

  async settle({ arrivals, request }: ScpRun): Promise<void> {
    for (const [name, arrival] of this.#arrivals) {
      this.#wanted.delete(name);
      const isSure = !this.#repeated.has(name) && !request.signal.aborted;
      if (isSure) await arrivals.add(arrival, arrival.digest?.bytes ?? 0);
      else await fs.rm(arrival.path, { force: true });
    }
  }
}
