/** The tables: a new state and an upgraded one have the same ones. */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { JobtailError } from '../../src/errors.ts';
import { NEWEST_VERSION, OLDEST_VERSION } from '../../src/store/schema.ts';
import { Store } from '../../src/store/store.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { putReleased } from '../upgrade/released-state.ts';

const open = (directory: string, owner = true) => new Store({ directory, service: 'x', owner, now: Date.now });

interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly sql: string | null;
}

/** Tables with the set of their columns and constraints, indexes and triggers, without regard to white space and order. */
function schemaIn(directory: string): ReadonlyMap<string, readonly string[]> {
  const db = new Database(path.join(directory, 'agent.db'), { readonly: true });
  try {
    const rows = db.prepare('SELECT type, name, sql FROM sqlite_schema').all() as SchemaRow[];
    expect(db.pragma('user_version', { simple: true })).toBe(NEWEST_VERSION);
    return new Map(rows.map((row) => [`${row.type} ${row.name}`, partsOf(row)] as const).sort());
  } finally {
    db.close();
  }
}

function partsOf({ type, sql }: SchemaRow): string[] {
  const text = (sql ?? '').replaceAll('"', '').replaceAll(/\s+/g, ' ');
  if (type !== 'table') return [text];
  const [start, end] = [text.indexOf('('), text.lastIndexOf(')')];
  const columns = text.slice(start + 1, end).split(/,(?![^(]*\))/);
  return [text.slice(0, start).trim(), ...columns.map((column) => column.trim()).sort(), text.slice(end + 1).trim()];
}

it('the tables are the same in a new state and in one of 0.2.0 that was upgraded', () => {
  const [fresh, upgraded] = [temporaryDirectory(), temporaryDirectory()];
  putReleased(upgraded);
  for (const directory of [fresh, upgraded]) open(directory).close();
  expect(schemaIn(fresh).get('table live_files')).toContain("mismatches TEXT NOT NULL DEFAULT '[]'");
  expect(schemaIn(upgraded)).toEqual(schemaIn(fresh));
});

it.each([OLDEST_VERSION - 1, NEWEST_VERSION - 1])(
  'of version %i are refused: the file stays as it is, and the hint says what to do',
  (version) => {
    const directory = temporaryDirectory();
    const file = putReleased(directory);
    const db = new Database(file);
    db.pragma(`user_version = ${version}`);
    db.close();
    const before = fs.readFileSync(file);
    for (const owner of [true, false]) {
      let refusal: unknown;
      try {
        open(directory, owner);
      } catch (error) {
        refusal = error;
      }
      expect(refusal).toBeInstanceOf(JobtailError);
      expect(refusal).toMatchObject({
        code: 'config',
        message: `${file} was written by an unsupported older version of the agent (its format is ${version})`,
        hint: expect.stringContaining(`stop the agent and move ${file} away: offsets are recovered from the mirrors`),
      });
    }
    expect(fs.readFileSync(file).equals(before)).toBe(true);
    expect(fs.readdirSync(directory).filter((name) => name.includes('.before-v'))).toEqual([]);
  },
);
