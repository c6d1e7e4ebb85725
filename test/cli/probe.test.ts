/** `agent check --probe`: what it asks, what it expects, and what its report shows. */
import { writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Sandbox } from '../../simulator/sandbox.ts';
import { probe, QUESTIONS, signatureOf } from '../../src/cli/check/probe.ts';
import { restConfig } from '../config/files.ts';
import { linesOf, RECORDED, type RecordedAnswer } from '../contract/recorded/answers.ts';
import { directoryOfFile } from '../support/temp-directory.ts';
import { bodyOf, closedAtEnd, startHttpServer } from '../support/wire-server.ts';

const PASSWORD = 'correct horse';
const SESSION = '8875ce0e-64f6-47a3-9df0-91ee9cd2005b';
const signal = new AbortController().signal;
const directory = directoryOfFile();

async function reportOf(baseUrl: string) {
  await writeFile(join(directory, 'secret'), PASSWORD, { mode: 0o600 });
  const auth = { username: 'alice', method: 'password', passwordFile: 'secret' };
  const { config } = await restConfig({ service: { protocol: 'rest', baseUrl }, auth }, directory);
  return probe(config, signal);
}

it('a response of very many members is a short line', () => {
  const members = Object.fromEntries(Array.from({ length: 40_000 }, (_, each) => [`m${each}`, 1]));
  expect(signatureOf({ status: 200, text: JSON.stringify(members) }).length).toBeLessThan(1_000);
});

describe.each(RECORDED)('as V$version was recorded', ({ version, release }) => {
  it('every answer is expected, at the same path', () => {
    const answers = new Map(
      linesOf<RecordedAnswer>(`answers-${version}.jsonl`).map(({ name, path, status, body }) => [
        name,
        { at: path.split('?')[0], answer: signatureOf({ status, text: body }) },
      ]),
    );
    for (const { name, path, expected } of QUESTIONS) {
      expect(expected, name).toContain(answers.get(name)?.answer);
      expect(`/${path.split('?')[0]}`).toBe(answers.get(name)?.at);
    }
  });

  it('the simulated cluster answers as expected, and nothing changes', async () => {
    const users = [{ username: 'alice', password: PASSWORD, token: 'alices.token' }];
    const sandbox = await Sandbox.start({ directory: join(directory, version), users });
    onTestFinished(() => sandbox.close());
    sandbox.setHabits({ release });
    expect(await reportOf(sandbox.baseUrl)).toEqual({ asked: QUESTIONS.length, unexpected: [] });
    // The simulated cluster counts the sign-in that is not JSON, too.
    expect(sandbox.counters.signIns).toBe(2);
  });
});

it('agent check --probe reports what is unexpected, without a secret, a name or content', async () => {
  const refusal = { title: 'alice', 'results/alice.txt': SESSION, detail: PASSWORD };
  const listener: RequestListener = async (request, response) => {
    const isSignIn = `${request.url}`.endsWith('AuthenticateUserPassword');
    const isRight = (await bodyOf(request)).includes('Credentials') && isSignIn;
    response.writeHead(isRight ? 200 : 418, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isRight ? SESSION : refusal));
  };
  const server = closedAtEnd(await startHttpServer(listener));
  const report = await reportOf(server.url);
  expect(report.unexpected.map(({ question }) => question)).toEqual(QUESTIONS.map(({ name }) => name));
  expect(new Set(report.unexpected.map(({ answer }) => answer))).toEqual(new Set(['418 {title,other,detail}']));
  const text = JSON.stringify(report);
  for (const hidden of [SESSION, PASSWORD, 'alice', 'results', server.url]) expect(text).not.toContain(hidden);
});
