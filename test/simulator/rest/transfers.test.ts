/** Keys over REST (docs/rest.md 3.7): their form by release, how many there are, and their end. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { wordingOf } from '../../../simulator/rest/failures.ts';
import { type ReleaseName, releaseOf } from '../../../simulator/rest/releases.ts';
import type { SandboxOptions } from '../../../simulator/sandbox.ts';
import { needs } from '../../support/needs.ts';
import { temporaryDirectory } from '../support.ts';
import { type Answered, post, startJob } from './support.ts';

async function startKeys(release: ReleaseName, options: Partial<SandboxOptions> = {}) {
  const place = await startJob(release, options);
  const { sandbox, session: SessionCode } = place;
  const job = { SubmittedJobInfoId: 501, SessionCode };
  const isFirst = releaseOf(release).keyAddresses === 'first';
  const request = () =>
    post(sandbox, isFirst ? 'FileTransfer/GetFileTransferMethod' : 'FileTransfer/RequestFileTransfer', job);
  /** The end that the release has, of what it answered with. */
  const end = ({ json }: Answered) =>
    isFirst
      ? post(sandbox, 'FileTransfer/EndFileTransfer', { ...job, UsedTransferMethod: json })
      : post(sandbox, 'FileTransfer/CloseFileTransfer', { ...job, PublicKey: json.Credentials?.PublicKey });
  return { ...place, body: job, request, end };
}

describe('a key', () => {
  it.each([
    ['2.0', { ServerHostname: 'login.example:2222' }, 2],
    ['3.0', { ServerHostname: 'login.example:2222' }, 2],
    ['3.1', { ServerHostname: 'login.example:2222' }, 4],
    ['4.0', { ServerHostname: 'login.example:2222' }, 4],
    ['4.1', { ServerHostname: 'login.example:2222' }, 4],
    ['4.2', { ServerHostname: 'login.example', Port: 2222 }, 4],
    ['6.4', { ServerHostname: 'login.example', Port: 2222 }, 4],
  ] as const)('of %s has its members, and ends once', async (release, host, Protocol) => {
    const ended: string[] = [];
    const { sandbox, job, request, end } = await startKeys(release, {
      habits: {
        serverHostname: 'login.example:2222',
        localTransfer: true,
        transferUsername: 'hpc',
        keyFormat: 'ec-pem',
      },
      onKeyEnded: (_, publicKey) => void ended.push(publicKey),
    });
    const key = await request();
    expect(key.json).toMatchObject({ ...host, SharedBasepath: job.directory, Protocol });
    expect('Port' in key.json).toBe('Port' in host);
    const { Credentials } = key.json;
    expect(Credentials).toMatchObject({
      Username: 'hpc',
      ...(release >= '4.1' && { Password: null, Passphrase: null }),
      ...(release >= '4.3' && { PrivateKeyCertificate: null }),
    });
    expect(sandbox.openKeys.map(({ publicKey }) => publicKey)).toEqual([Credentials.PublicKey]);
    expect(await end(key)).toMatchObject({ status: 200, json: expect.any(String) });
    expect(ended).toEqual([Credentials.PublicKey]);
    expect((await end(key)).status).toBe(wordingOf('external', release).status);
  });

  it.each([
    ['2.0', 'open'],
    ['4.3', 'open'],
    ['5.0', 'ever'],
    ['6.3', 'ever'],
    ['6.4', 'open'],
  ] as const)('of %s is refused if it is the seventh, of those that are counted: %s', async (release, counts) => {
    const { sandbox, request, end } = await startKeys(release);
    const keys: Answered[] = [];
    for (let count = 0; count < 6; count++) keys.push(await request());
    const refused = { status: wordingOf('external', release).status };
    expect(await request()).toMatchObject(refused);
    for (const key of keys) await end(key);
    expect(sandbox.openKeys).toEqual([]);
    expect(await request()).toMatchObject(counts === 'ever' ? refused : { status: 200 });
  });

  it('ends in both ways where there are both', async () => {
    const { sandbox, body, request } = await startKeys('4.1');
    const first = await post(sandbox, 'FileTransfer/GetFileTransferMethod', body);
    const second = await request();
    const PublicKey = first.json.Credentials.PublicKey;
    expect(await post(sandbox, 'FileTransfer/CloseFileTransfer', { ...body, PublicKey })).toMatchObject({
      status: 200,
    });
    const UsedTransferMethod = second.json;
    expect(await post(sandbox, 'FileTransfer/EndFileTransfer', { ...body, UsedTransferMethod })).toMatchObject({
      status: 200,
    });
    expect(sandbox.openKeys).toEqual([]);
  });

  it.each([
    [undefined],
    [{}],
    [{ Credentials: null }],
    [{ Credentials: { Username: 'hpc', PublicKey: 'x' } }],
    [{ ServerHostname: null }],
  ])('does not end by less than the whole object: %j', async (change) => {
    const { sandbox, body, request } = await startKeys('3.1');
    const { json } = await request();
    const part = change && (Object.keys(change).length === 0 ? {} : { ...json, ...change });
    const ended = await post(sandbox, 'FileTransfer/EndFileTransfer', { ...body, UsedTransferMethod: part });
    expect(ended).toMatchObject({ status: 400, json: { errors: expect.any(Object) } });
    expect(sandbox.openKeys).toHaveLength(1);
  });

  it('may be the real one of the account, which is always the same and does not end', async () => {
    const { sandbox, request, end } = await startKeys('6.3', { habits: { accountKeys: true } });
    const key = await request();
    for (let count = 0; count < 7; count++) expect((await request()).json.Credentials).toEqual(key.json.Credentials);
    expect(await end(key)).toMatchObject({ status: 200 });
    expect((await request()).json.Credentials).toEqual(key.json.Credentials);
    expect(sandbox.counters).toMatchObject({ openKeys: 0, issuedKeys: 0 });
  });

  it('is none of a share, and nothing where there is no method', async () => {
    const { sandbox, request, end } = await startKeys('6.3', { habits: { transferProtocol: 'NetworkShare' } });
    const share = await request();
    expect(share.json).toMatchObject({ Protocol: 1, Credentials: null });
    expect(await end(share)).toMatchObject({ status: 200 });
    sandbox.setHabits({ transferProtocol: 'none' });
    expect(await request()).toMatchObject({ status: 204, text: '' });
  });

  it.each(['rsa-pem', 'ec-pem'] as const)(
    '%s opens with its passphrase alone',
    needs('ssh-keygen'),
    async (keyFormat) => {
      const { request } = await startKeys('6.3', {
        habits: { keyFormat, keyPassphrase: 'open sesame' },
        certify: (publicKey) => `certificate of ${publicKey}`,
      });
      const { Credentials } = (await request()).json;
      expect(Credentials).toMatchObject({
        Passphrase: 'open sesame',
        PrivateKeyCertificate: `certificate of ${Credentials.PublicKey}`,
      });
      const file = join(await temporaryDirectory(), 'key');
      writeFileSync(file, Credentials.PrivateKey, { mode: 0o600 });
      const publicKeyBy = (passphrase: string) =>
        execFileSync('ssh-keygen', ['-y', '-P', passphrase, '-f', file], { encoding: 'utf8', stdio: 'pipe' });
      expect(publicKeyBy('open sesame').trim()).toContain(Credentials.PublicKey);
      expect(() => publicKeyBy('wrong')).toThrow();
    },
  );
});
