/** The tables: a new state and an upgraded one have the same ones. */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import type { JobId } from '../../src/job.ts';
import { lockDirectory } from '../../src/store/lock.ts';
import { PORTABLE_KEYS } from '../../src/store/portable-rows.ts';
import { NEWEST_VERSION, OLDEST_VERSION } from '../../src/store/schema.ts';
import { Store } from '../../src/store/store.ts';
import { errorOf } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { putReleased } from '../upgrade/released-state.ts';

const NOW = Date.UTC(2026, 10, 5, 6, 7, 8);
const open = (directory: string, owner = true) => new Store({ directory, service: 'x', owner, now: () => NOW });
const backupsIn = (directory: string) => fs.readdirSync(directory).filter((name) => name.includes('.before-v'));

/** What `read` finds in a database, or changes in it. */
function inDatabase<T>(file: string, read: (db: Database.Database) => T): T {
  const db = new Database(file);
  try {
    return read(db);
  } finally {
    db.close();
  }
}

const versionOf = (file: string) => inDatabase(file, (db) => db.pragma('user_version', { simple: true }));

interface SchemaRow {
  readonly type: string;
  readonly name: string;
  readonly sql: string | null;
}

/** Tables with the set of their columns and constraints, indexes and triggers, without regard to white space and order. */
function schemaIn(directory: string): ReadonlyMap<string, readonly string[]> {
  const file = path.join(directory, 'agent.db');
  expect(versionOf(file)).toBe(NEWEST_VERSION);
  const rows = inDatabase(file, (db) => db.prepare('SELECT type, name, sql FROM sqlite_schema').all() as SchemaRow[]);
  return new Map(rows.map((row) => [`${row.type} ${row.name}`, partsOf(row)] as const).sort());
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
  // The rows of a job go to its next owner, except the fencing token.
  const ofJobs = [...schemaIn(fresh)].filter(([, parts]) => parts.some((part) => part.includes('REFERENCES jobs')));
  const tables = ['jobs', ...ofJobs.map(([name]) => name.replace('table ', ''))];
  expect(tables.sort()).toEqual([...Object.keys(PORTABLE_KEYS), 'fleet_leases'].sort());
});

const BEGIN_ANEW = (file: string) => `move ${file} away: offsets are recovered from the mirrors`;

const FROM_OLDEST = 'from format 12 (0.2.0) on: stop the agent';

type Refused = [
  version: number,
  code: string,
  what: string,
  hint: (file: string) => string,
  owners?: readonly boolean[],
];

it.each<Refused>([
  ...[OLDEST_VERSION - 1, NEWEST_VERSION - 1].map((version): Refused => {
    return [version, 'config', 'an unsupported older', (file) => `${FROM_OLDEST} and ${BEGIN_ANEW(file)}`];
  }),
  [
    NEWEST_VERSION + 1,
    'config',
    'a newer',
    (file) =>
      `install the newer agent. To keep this version, stop the agent, and put back the copy ${file}.before-v${NEWEST_VERSION + 1}.TIME (docs/install.md) or ${BEGIN_ANEW(file)}`,
  ],
  [OLDEST_VERSION, 'store', 'an older', () => 'start or restart the agent once with this version', [false]],
  [0, 'store', '', () => 'start the agent once', [false]],
])(
  'tables of version %i are refused with %s: the file stays as it is',
  (version, code, age, hint, owners = [true, false]) => {
    const directory = temporaryDirectory();
    const file = putReleased(directory);
    inDatabase(file, (db) => db.pragma(`user_version = ${version}`));
    const before = fs.readFileSync(file);
    const written = `${file} was written by ${age} version of the agent (its format is ${version})`;
    for (const owner of owners)
      expect(errorOf(() => open(directory, owner))).toMatchObject({
        ...{ code, message: version === 0 ? `there is no state in ${directory} yet` : written },
        hint: expect.stringContaining(hint(file)),
      });
    if (version === 0) {
      const { release } = lockDirectory(directory, 'agent');
      expect(errorOf(() => open(directory, false)).message).toBe(`another process is creating ${file}`);
      release();
    }
    expect(fs.readFileSync(file).equals(before)).toBe(true);
    expect(backupsIn(directory)).toEqual([]);
  },
);

it('an upgrade of the state runs once, keeps what is there, and leaves one whole copy of what was', () => {
  const directory = temporaryDirectory();
  const file = putReleased(directory);
  inDatabase(file, (db) =>
    db.exec(`INSERT INTO jobs (job_id, source, state, results, watched_at) VALUES ('501', 'config', 'watched', 1, 7);
      INSERT INTO live_files (job_id, task_id, file, position) VALUES ('501', '9001', 'stdout', 42)`),
  );
  // As a kill leaves them.
  for (const suffix of ['', '-journal']) fs.writeFileSync(`${file}.before-v${NEWEST_VERSION}.partial${suffix}`, 'half');
  for (let start = 0; start < 2; start++) {
    const store = open(directory);
    expect(store.jobs.all()).toMatchObject([{ jobId: '501', state: 'watched', source: 'config' }]);
    expect(store.liveFiles.ofJob('501' as JobId)).toMatchObject([{ position: 42 }]);
    store.close();
  }
  expect(versionOf(file)).toBe(NEWEST_VERSION);
  expect(backupsIn(directory)).toEqual([`agent.db.before-v${NEWEST_VERSION}.2026-11-05T06-07-08.000Z`]);
  expect(versionOf(path.join(directory, ...backupsIn(directory)))).toBe(OLDEST_VERSION);
});

it('an upgrade of the state that fails leaves the state to the older version', () => {
  const directory = temporaryDirectory();
  const file = putReleased(directory);
  // An upgrade adds this column.
  inDatabase(file, (db) => db.exec('ALTER TABLE jobs ADD COLUMN stalled_at INTEGER'));
  expect(errorOf(() => open(directory))).toMatchObject({
    code: 'store',
    message: `${file} cannot be upgraded from format ${OLDEST_VERSION} to ${NEWEST_VERSION}: duplicate column name: stalled_at`,
    hint: expect.stringMatching(/^keep the older version \(the file is unchanged\), or move .* away/),
  });
  expect(versionOf(file)).toBe(OLDEST_VERSION);
  const added = "SELECT name FROM pragma_table_info('jobs') WHERE name = 'stall_after_ms'";
  expect(inDatabase(file, (db) => db.prepare(added).all())).toEqual([]);
});
