/** What agents do in a simulated world, as text that is the same in each run: moment by moment, and what is left in the end. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect } from 'vitest';
import { keepAlive, openNative } from '../../src/store/sql.ts';
import type { SimulatedWorld } from './simulated-world.ts';
import type { World } from './world.ts';

/** Of a call, so many files are shown. */
const MAX_FILES = 12;
/** Calls that change something. */
const CHANGES = /^(?!(?:l?stat|fstat|read|readdir|opendir|readFile|readlink|statfs|close|open)$)/;
/** Columns with another value in each run. */
const RANDOM = ['inode', 'modified_ns', 'delivery_id', 'request_id'];

/** Without what is another text in each process. */
const shown = (text: string) =>
  text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')
    .replaceAll(/(?<=\.jobtail-)[0-9a-f]+/g, '*')
    .replaceAll(/(?<="(?:inode|modified_ns)":")\d+/g, '*')
    .replaceAll(/(?<="pid":)\d+/g, '*')
    .replaceAll(`"host":"${os.hostname()}"`, '"host":"HOST"')
    .replaceAll(`jobtail/${os.hostname()}`, 'jobtail/HOST');

/** What happens in a step of a life, and for how long it is looked at. */
export type StepOf<Of> = readonly [what: string, act: (world: Of) => unknown, minutes?: number];

export async function play<Of extends SimulatedWorld>(world: Of, steps: readonly StepOf<Of>[]): Promise<void> {
  for (const [what, act, minutes = 0] of steps) {
    world.note(`- ${what}`);
    await act(world);
    await world.time.pass(minutes * 60_000);
  }
}

const fileOf = (name: string) => `${name.replaceAll(/\W+/g, '-')}.txt`;

/** Compares with the file of that name in printed/. */
export async function expectPrinted(directory: string, name: string, text: string): Promise<void> {
  await expect(text).toMatchFileSnapshot(path.join(directory, 'printed', fileOf(name)));
}

/** Those of no life any more would be read for nothing. */
export function expectNoOthers(directory: string, names: readonly string[]): void {
  expect(fs.readdirSync(path.join(directory, 'printed')).sort()).toEqual(names.map(fileOf).sort());
}

type Traced = Pick<World, 'service' | 'disk' | 'receiver' | 'note' | 'time' | 'directory'>;

export class Trace {
  transactions = 0;
  readonly #lines: { readonly at: string; readonly text: string; times: number }[] = [];
  readonly #world: Traced;
  #at = '';

  /** `who`: the name of the agent that is at work, if there are several; `isShown`: of the calls of the disk. */
  constructor(world: Traced, who: () => string, isShown = CHANGES) {
    const { service, disk, receiver } = world;
    const { onCall } = service;
    this.#world = world;
    const note = world.note.bind(world);
    const done = (what: string) => this.#add(`${who()} ${what}`.trimStart());
    world.note = (line) => {
      note(line);
      if (!line.endsWith(' ok')) this.#add(line);
    };
    service.onCall = (call) => {
      onCall(call);
      const { operation, jobId = '', files } = call;
      const more = files.length > MAX_FILES ? ` and ${files.length - MAX_FILES} more` : '';
      done(`asks ${operation} ${jobId} ${files.slice(0, MAX_FILES).join(' ')}${more}`);
    };
    disk.onCall = (name, file) => {
      if (isShown.test(name)) done(`disk ${name} ${file}`);
    };
    disk.onTransaction = () => {
      this.transactions += 1;
    };
    receiver.onRequest = (body) => done(`reports ${body}`);
  }

  #add(line: string): void {
    const text = shown(line.replaceAll(this.#world.directory, '')).trimEnd();
    const at = (this.#world.time.passedMs / 1000).toFixed(1);
    const last = this.#lines.at(-1);
    if (at === this.#at && last?.text === text) last.times += 1;
    else this.#lines.push({ at: at === this.#at ? '' : at, text, times: 1 });
    this.#at = at;
  }

  get text(): string {
    return this.#lines
      .map(({ at, text, times }) => `${at.padStart(7)} ${text}${times > 1 ? ` (${times} times)` : ''}\n`)
      .join('');
  }
}

/** What lies in a directory: each file with its mode and size, each link with its target. */
export function treeOf(directory: string): string {
  const names = fs.readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();
  const lines = names.map((name) => {
    const at = path.join(directory, name);
    const stat = fs.lstatSync(at);
    if (stat.isSymbolicLink()) return `${name} -> ${fs.readlinkSync(at)}`;
    return `${(stat.mode & 0o777).toString(8)} ${name}${stat.isFile() ? ` ${stat.size}` : ''}`;
  });
  return lines.map((line) => `  ${line}\n`).join('');
}

/** A row without what is empty, or another value in each run. */
export function rowText(table: string, row: Readonly<Record<string, unknown>>): string {
  const values = Object.entries(row).filter(([, value]) => value !== null);
  const fields = values.map(
    ([name, value]) =>
      `${name}=${RANDOM.includes(name) ? '*' : typeof value === 'object' ? JSON.stringify(value) : String(value)}`,
  );
  return `  ${shown(`${table} ${fields.join(' ')}`)}\n`;
}

/** Each row of the state. */
export function rowsOf(file: string): string {
  const database = openNative(file, { readonly: true });
  const all = (sql: string) => keepAlive(database.prepare(sql)).all() as Readonly<Record<string, unknown>>[];
  try {
    const tables = all(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`);
    const lines = tables.flatMap(({ name: table }) =>
      all(`SELECT * FROM ${String(table)}`).map((row) => rowText(String(table), row)),
    );
    return lines.join('');
  } finally {
    database.close();
  }
}
