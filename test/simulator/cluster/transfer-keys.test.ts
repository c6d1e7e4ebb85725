import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createKeyPair } from '../../../simulator/cluster/key-pair.ts';
import { accountName } from '../../../simulator/cluster/transfer-keys.ts';
import { needs } from '../../support/needs.ts';
import { call, faultText, jobAnd, NAMESPACE, signIn, startSandbox, temporaryDirectory } from '../support.ts';

const GET = 'GetFileTransferMethod';
const END = 'EndFileTransfer';

async function startJob(options: Parameters<typeof startSandbox>[0] = {}) {
  const sandbox = await startSandbox(options);
  const session = await signIn(sandbox);
  const job = await sandbox.submitJob({ jobId: '501', tasks: [{}] });
  const get = () => call(sandbox, GET, jobAnd('501', session));
  const key = async () => /<publicKey>(.*)<\/publicKey>/.exec((await get()).body)?.[1] ?? '';
  const end = (method: string) =>
    call(sandbox, END, jobAnd('501', session, method && `<usedTransferMethod>${method}</usedTransferMethod>`));
  const endKey = (publicKey: string) =>
    end(`<protocol>SftpScp</protocol><credentials><publicKey>${publicKey}</publicKey></credentials>`);
  return { sandbox, job, get, key, end, endKey };
}

describe('temporary key pairs', () => {
  it.each([
    ['rsa-pem', '-----BEGIN RSA PRIVATE KEY-----', 'ssh-rsa AAAA'],
    ['ec-pem', '-----BEGIN EC PRIVATE KEY-----', 'ecdsa-sha2-nistp256 AAAA'],
    ['ed25519-openssh', '-----BEGIN OPENSSH PRIVATE KEY-----', 'ssh-ed25519 AAAA'],
  ] as const)('%s has the format of its servers', async (format, privateStart, publicStart) => {
    const { privateKey, publicKey } = await createKeyPair(format);
    expect(privateKey.startsWith(privateStart)).toBe(true);
    expect(publicKey.startsWith(publicStart)).toBe(true);
    if (format !== 'ed25519-openssh') expect(createPrivateKey(privateKey).type).toBe('private');
  });

  it.each(['rsa-pem', 'ec-pem', 'ed25519-openssh'] as const)(
    '%s is what OpenSSH takes it for',
    needs('ssh-keygen'),
    async (format) => {
      const file = join(await temporaryDirectory(), 'key');
      for (let round = 0; round < 3; round++) {
        const { privateKey, publicKey } = await createKeyPair(format);
        writeFileSync(file, privateKey, { mode: 0o600 });
        const seen = execFileSync('ssh-keygen', ['-y', '-f', file], { encoding: 'utf8' });
        expect(seen.trim().split(' ').slice(0, 2).join(' ')).toBe(publicKey);
      }
    },
  );
});

describe('GetFileTransferMethod and EndFileTransfer', () => {
  it('issues a key with all members in order, and ends it once', async () => {
    const seen: string[] = [];
    const { sandbox, job, get, endKey } = await startJob({
      habits: { keyFormat: 'ec-pem', transferUsername: 'hpc', serverHostname: '127.0.0.1:2222' },
      onKeyIssued: (jobId, publicKey) => void seen.push(`issued ${jobId} ${publicKey}`),
      onKeyEnded: (jobId, publicKey) => void seen.push(`ended ${jobId} ${publicKey}`),
    });
    const { body } = await get();
    const [, privateKey, publicKey] = /<privateKey>(.*)<\/privateKey><publicKey>(.*)<\/publicKey>/s.exec(body) ?? [];
    expect(body).toBe(
      `<${GET}Response xmlns="${NAMESPACE}"><${GET}Result><serverHostname>127.0.0.1:2222</serverHostname>` +
        `<sharedBasepath>${job.directory}</sharedBasepath><protocol>SftpScp</protocol><credentials>` +
        `<username>hpc</username><privateKey>${privateKey}</privateKey><publicKey>${publicKey}</publicKey>` +
        `</credentials></${GET}Result></${GET}Response>`,
    );
    expect(sandbox.openKeys).toMatchObject([{ jobId: '501', publicKey }]);
    expect(faultText(await endKey(`${publicKey} `))).toBe(
      'The direct transfer could not be finished due to a public key mismatch.',
    );
    expect((await endKey(publicKey ?? '')).body).toBe(`<${END}Response xmlns="${NAMESPACE}" />`);
    expect(sandbox.counters).toMatchObject({ openKeys: 0, issuedKeys: 1 });
    expect((await endKey(publicKey ?? '')).status).toBe(500);
    expect(seen).toEqual([`issued 501 ${publicKey}`, `ended 501 ${publicKey}`]);
  });

  it('refuses a seventh key, counting the open ones or all there ever were', async () => {
    const { sandbox, key, get, endKey } = await startJob({ habits: { keyFormat: 'ec-pem' } });
    const keys = await Promise.all(Array.from({ length: 6 }, key));
    expect(new Set(keys).size).toBe(6);
    expect(faultText(await get())).toBe(
      'The maximum limit for the number of generated file transfer ssh keys was reached.',
    );
    await endKey(keys[0] ?? '');
    expect(await key()).toMatch(/^ecdsa/);
    await endKey(keys[1] ?? '');
    sandbox.habits.maxKeysCounts = 'ever';
    expect((await get()).status).toBe(500);
  });

  it('lets a key end by itself after a day', async () => {
    let nowMs = 0;
    const habits = { keyFormat: 'ec-pem', sessionIdleMinutes: 10_000 } as const;
    const { sandbox, key, endKey } = await startJob({ habits, clock: () => nowMs });
    const publicKey = await key();
    nowMs += 24 * 3_600_000 - 1;
    expect(sandbox.openKeys).toHaveLength(1);
    nowMs += 1;
    expect(sandbox.openKeys).toHaveLength(0);
    expect((await endKey(publicKey)).status).toBe(500);
  });

  it('knows a share without credentials, and having no method at all', async () => {
    const { sandbox, get, end } = await startJob({
      habits: { transferProtocol: 'NetworkShare', sharedRoot: '/srv/x' },
    });
    expect((await get()).body).toContain(
      '<sharedBasepath>/srv/x/501</sharedBasepath><protocol>NetworkShare</protocol></GetFileTransferMethodResult>',
    );
    sandbox.habits.nullMembers = true;
    expect((await get()).body).toContain('<credentials xsi:nil="true" />');
    expect((await end('<protocol>NetworkShare</protocol>')).status).toBe(200);
    expect((await end('')).status).toBe(500);
    sandbox.setHabits({ transferProtocol: 'none', nullMembers: false });
    expect((await get()).body).toBe(`<${GET}Response xmlns="${NAMESPACE}" />`);
  });
});

it('a user without a name, as in a container, is called by the number', () => {
  const nameless = () => {
    throw new Error('no such user');
  };
  expect(accountName(nameless)).toBe(String(process.getuid?.()));
});
