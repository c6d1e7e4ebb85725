/** What a person needs to use a running sandbox: its secrets in files, and the configuration of an agent that follows it. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { Sandbox } from './sandbox.ts';

/** A file (0600) of `<directory>/secrets/` that `writeSecrets` writes. */
export function secretFile({ directory }: Sandbox, name: 'password' | 'token' | 'control-token'): string {
  return join(directory, 'secrets', name);
}

/** Writes the secrets of the first user and of the control interface. */
export async function writeSecrets(sandbox: Sandbox): Promise<void> {
  const { password = '', token = '' } = sandbox.users[0] ?? {};
  await mkdir(join(sandbox.directory, 'secrets'), { recursive: true, mode: 0o700 });
  const secrets = { password, token, 'control-token': sandbox.controlToken } as const;
  for (const [name, secret] of Object.entries(secrets))
    await writeFile(secretFile(sandbox, name as keyof typeof secrets), `${secret}\n`, { mode: 0o600 });
}

export type Protocol = 'soap' | 'rest';

/** The sections of a configuration without which no agent follows this sandbox. */
export function configurationFor(
  sandbox: Sandbox,
  passwordFile = secretFile(sandbox, 'password'),
  protocol: Protocol = 'soap',
) {
  const username = sandbox.users[0]?.username ?? '';
  return { service: serviceOf(sandbox, protocol), auth: { method: 'password', username, passwordFile } };
}

function serviceOf(sandbox: Sandbox, protocol: Protocol) {
  const { baseUrl, fileTransferUrl, jobsUrl, namespace } = sandbox;
  if (protocol === 'soap')
    return { protocol, fileTransferUrl, namespace, baseUrl, ...(jobsUrl !== null && { jobsUrl }) };
  return { protocol, baseUrl };
}

/** The facts as comments, then the whole configuration of an agent: all of it is YAML, and names secrets by their files. */
export function describeSandbox(sandbox: Sandbox, protocol: Protocol = 'soap'): string {
  const facts = [
    ['file transfer', sandbox.fileTransferUrl],
    ['job management', sandbox.jobsUrl ?? 'none'],
    ['sign-in', sandbox.baseUrl],
    ['REST', `${sandbox.restUrl} as release ${sandbox.habits.release}`],
    ['jobs', join(sandbox.directory, 'jobs')],
    ['control', `${sandbox.baseUrl}/sandbox/ (token in ${secretFile(sandbox, 'control-token')})`],
  ].map(([name = '', value = '']) => `# ${name.padEnd(14)} ${value}\n`);
  // Below the working directory: an agent that is tried out needs no rights of root.
  const directories = { mirror: { directory: './mirror' }, state: { directory: './state' } };
  const configuration = { ...configurationFor(sandbox, undefined, protocol), ...directories };
  // In quotes, and each value on one line, however long a path is.
  return `${facts.join('')}\n${stringify(configuration, { lineWidth: 0, defaultStringType: 'QUOTE_DOUBLE', defaultKeyType: 'PLAIN' })}`;
}
