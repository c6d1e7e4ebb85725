/** A pause that the service asks one job for is kept by all jobs, over real HTTP. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Calls, queuedRemote } from '../../src/agent/calls.ts';
import { connect } from '../../src/daemon/connection.ts';
import { JobtailError } from '../../src/errors.ts';
import { restConfig } from '../config/files.ts';
import { SILENT } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { jobId } from '../support/wire-remote.ts';
import { startHttpServer } from '../support/wire-server.ts';

const JOBS = 10;
const CALLS_OF_JOB = 4;
/** The request that is refused. */
const REFUSED = 7;

test.each([429, 503])('no call of any job is made while a pause of status %i holds', async (status) => {
  const askedAt: number[] = [];
  let refusedAt = Number.NaN;
  const server = await startHttpServer((request, response) => {
    request.resume().on('end', () => {
      askedAt.push(performance.now());
      if (askedAt.length !== REFUSED) {
        response.writeHead(200, { 'content-type': 'application/json' }).end('[]');
        return;
      }
      refusedAt = performance.now();
      response.writeHead(status, { 'retry-after': '1', 'content-type': 'text/plain' }).end('wait');
    });
  });
  onTestFinished(() => server.close());
  const directory = temporaryDirectory();
  fs.writeFileSync(path.join(directory, 'code'), '11111111-2222-3333-4444-555555555555', { mode: 0o600 });
  const service = { protocol: 'rest', baseUrl: new URL(server.url).origin };
  const auth = { method: 'session-code', sessionCodeFile: 'code' };
  const { config } = await restConfig({ service, auth }, directory);
  const lines = new Set<string>();
  const say = (level: string) => (fields: object, message: string) =>
    void lines.add(`${level} ${message} ${JSON.stringify(fields).replace(/(?<="(?:durationMs|tookMs)":)\d+/, 'MS')}`);
  const connection = await connect(config, { ...SILENT, debug: say('debug'), info: say('info'), warn: say('warn') });
  onTestFinished(() => connection.close());

  const calls = new Calls({ concurrency: 1, share: connection.share });
  const remote = queuedRemote(connection.remote, calls, 'live');
  const { signal } = new AbortController();
  const codes: string[] = [];
  const job = async (id: string) => {
    for (let call = 0; call < CALLS_OF_JOB; call++) {
      await remote.listChangedFiles(jobId(id), signal).catch((error: unknown) => {
        codes.push(error instanceof JobtailError ? error.code : String(error));
      });
    }
  };
  await Promise.all(Array.from({ length: JOBS }, (_, index) => job(String(index + 1))));

  expect(askedAt).toHaveLength(JOBS * CALLS_OF_JOB);
  expect(codes).toHaveLength(1);
  expect(Math.min(...askedAt.slice(REFUSED)) - refusedAt).toBeGreaterThanOrEqual(1_000);
  const call = (outcome: string, bytes: number) =>
    `debug call {"operation":"ListChangedFilesForJob","durationMs":MS,"outcome":"${outcome}","bytes":${bytes}}`;
  expect([...lines]).toEqual([
    'info signed in {"tookMs":MS}',
    call('ok', 2),
    `warn all calls paused by the service {"status":${status},"pauseMs":1000}`,
    call(status === 429 ? 'rate-limited' : 'unavailable', 4),
  ]);
});
