import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { connect } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { FLEET_PLACE } from '../../../../bench/fleet-node.ts';
import { findDatabasePrograms } from '../../../../simulator/database/programs.ts';
import { TemporaryDatabase } from '../../../../simulator/database/temporary-database.ts';
import { until } from '../../../support/e2e-until.ts';
import { needs } from '../../../support/needs.ts';
import { READS_TYPESCRIPT } from '../../../support/typescript-hook.ts';

const programs = findDatabasePrograms([FLEET_PLACE]) ?? { initdb: '', postgres: '' };
const SOURCES = new URL('../../../../simulator/database/', import.meta.url);

const databases: TemporaryDatabase[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(databases.splice(0).map((database) => database.remove()));
});

async function startDatabase(): Promise<TemporaryDatabase> {
  const database = await TemporaryDatabase.start(programs);
  databases.push(database);
  return database;
}

/** Whether somebody listens there. */
function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  }).finally(() => socket.destroy()) as Promise<boolean>;
}

function temporaryDirectory(): string {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'jobtail-test-'));
  onTestFinished(() => fs.rmSync(directory, { recursive: true, force: true }));
  // Whoever PostgreSQL runs as has to get there.
  fs.chmodSync(directory, 0o777);
  return directory;
}

describe('a temporary database', needs('postgres'), () => {
  it('answers, is gone while it is stopped or killed, and comes back at the same port', async () => {
    const database = await startDatabase();
    expect(await answers(database.port)).toBe(true);
    for (const end of ['stop', 'kill'] as const) {
      await database[end]();
      expect(await answers(database.port)).toBe(false);
      await database.start();
      expect(await answers(database.port)).toBe(true);
    }
  });

  it('leaves nothing behind', async () => {
    // Other tests have databases in the usual place.
    vi.stubEnv('TMPDIR', temporaryDirectory());
    const database = await startDatabase();
    const [mine = ''] = fs.readdirSync(os.tmpdir());
    expect(fs.existsSync(path.join(os.tmpdir(), mine, 'data', 'PG_VERSION'))).toBe(true);
    await database.remove();
    await database.remove();
    expect(fs.readdirSync(os.tmpdir())).toEqual([]);
    expect(await answers(database.port)).toBe(false);
    await expect(database.stop()).rejects.toThrow('has ended');
  });

  it('is gone when the program that started it was killed', async () => {
    const source = [
      `import { TemporaryDatabase } from '${new URL('temporary-database.ts', SOURCES)}';`,
      `const { port } = await TemporaryDatabase.start(${JSON.stringify(programs)});`,
      'process.stdout.write(JSON.stringify(port) + "\\n");',
      'setInterval(() => {}, 1_000);',
    ].join('\n');
    const temporary = temporaryDirectory();
    const starter = spawn(process.execPath, [...READS_TYPESCRIPT, '--input-type=module', '--eval', source], {
      env: { ...process.env, TMPDIR: temporary },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(createInterface(starter.stdout), 'line')) as [string];
    expect(await answers(Number(line))).toBe(true);
    starter.kill('SIGKILL');
    await until('the directory to be removed', () => fs.readdirSync(temporary).length === 0);
    expect(await answers(Number(line))).toBe(false);
  });

  it('says what PostgreSQL said where it cannot be made', async () => {
    const nothing = { initdb: '/bin/false', postgres: '/bin/false' };
    await expect(TemporaryDatabase.start(nothing)).rejects.toThrow('initdb failed');
  });
});
