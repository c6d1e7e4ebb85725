/**
 * The SSH access of a transfer method (docs/dev/soap.md 2.1, docs/dev/servers.md 5.2) as a configuration file for OpenSSH,
 * so that nothing from the server is on a command line. Words from the server are checked first: a line break or a
 * quote would be a line of the configuration.
 */
import path from 'node:path';
import type { TransferMethod } from '../agent/ports/server.ts';
import type { DirectRequest } from '../agent/ports/transfer.ts';
import { JobtailError } from '../errors.ts';
import { NotInstalled, printedBy, runProgram } from '../system/program.ts';
import { unacceptable } from './failures.ts';
import type { PrivateDirectory } from './private-directory.ts';

export interface SshOptions {
  readonly hostKeys: 'accept-new' | 'strict';
  readonly knownHostsFile: string;
  /** If there are any, the host must have one of these keys. */
  readonly pinnedKeys: readonly string[];
}

export const HOST_ALIAS = 'transfer';

interface SshAccess {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly privateKey: string;
  /** Of the private key; undefined if it is not encrypted. */
  readonly passphrase: string | undefined;
  readonly certificate: string | undefined;
  readonly basePath: string;
}

export interface SshConnection {
  readonly access: SshAccess;
  readonly configFile: string;
  /** A program that transfers nothing for this time is ended. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

export type SshRequest = DirectRequest & SshConnection;

/** The first results of a job may wait for it. */
const CONNECT_SECONDS = 6;
const ALIVE_SECONDS = 15;
const ANSWER_MS = 10_000;

const USUAL_PORT = 22;
/** One line of a signed public key. */
const CERTIFICATE = /^[a-z0-9@.-]+-cert-v01@openssh\.com AAAA[A-Za-z0-9+/]+={0,2}(?: [\x20-\x7e]*)?\r?\n?$/;

export function accessOf({ serverHostname, sharedBasepath, port: given, credentials }: TransferMethod): SshAccess {
  const found = /^(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9][A-Za-z0-9._-]*))(?::([0-9]{1,5}))?$/.exec(serverHostname ?? '');
  const plainV6 = /^[0-9A-Fa-f]*(?::[0-9A-Fa-f]*){2,7}$/.test(serverHostname ?? '') ? serverHostname : undefined;
  const host = found?.[1] ?? found?.[2] ?? plainV6;
  const port = Number(found?.[3] ?? given ?? USUAL_PORT);
  if (host === undefined || host === null || port < 1 || port > 65_535) throw unusable('host name');
  const { username, privateKey, passphrase, certificate } = credentials ?? {};
  if (typeof username !== 'string' || !/^[A-Za-z0-9_][A-Za-z0-9._@+-]*\$?$/.test(username)) throw unusable('user name');
  if (typeof privateKey !== 'string' || !privateKey.includes('PRIVATE KEY-----')) throw unusable('private key');
  if (certificate !== undefined && !CERTIFICATE.test(certificate)) throw unusable('certificate');
  const basePath = sharedBasepath ?? '';
  if (basePath === '' || /^[-:]|\p{Cc}/u.test(basePath)) throw unusable('base path');
  return { host, port, username, privateKey, passphrase, certificate, basePath: basePath.replace(/(?<!\/)\/+$/, '') };
}

function unusable(what: string): JobtailError {
  return unacceptable(`the transfer method of the service has no usable ${what}`);
}

/** The default ciphers of OpenSSH, with those first that the processor accelerates: more than twice as fast. */
const CIPHERS = [
  ...['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'chacha20-poly1305@openssh.com'],
  ...['aes128-ctr', 'aes192-ctr', 'aes256-ctr'],
];

async function ciphersOf(signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
  const asked = { command: 'ssh', args: ['-Q', 'cipher'], limit: { totalMs: ANSWER_MS }, maxBytes: 65_536, signal };
  const shown = await printedBy(asked).catch((error: unknown) => {
    if (error instanceof NotInstalled) return { printed: '' };
    throw error;
  });
  const known = new Set(shown.printed.toString().split('\n'));
  const ciphers = CIPHERS.filter((cipher) => known.has(cipher));
  return ciphers.length === 0 ? {} : { Ciphers: ciphers.join(',') };
}

/** Runs `work` with a configuration file for OpenSSH; removes it and the key afterwards. */
export async function withConfiguration<T>(
  access: SshAccess,
  options: SshOptions & { readonly directory: PrivateDirectory; readonly signal: AbortSignal },
  work: (configFile: string) => Promise<T>,
): Promise<T> {
  const { host, port, privateKey, passphrase, certificate } = access;
  const ciphers = await ciphersOf(options.signal);
  const hostPattern = port === USUAL_PORT ? host : `[${host}]:${port}`;
  return options.directory.withFiles(
    (directory) => ({
      key: `${privateKey.replaceAll('\r', '').trimEnd()}\n`,
      ...(certificate === undefined ? {} : { certificate: `${certificate.trim()}\n` }),
      pinned: options.pinnedKeys.map((key) => `${hostPattern} ${key}\n`).join(''),
      config: configuration(access, { ...options, ciphers, directory }),
    }),
    async (directory) => {
      if (passphrase !== undefined) await unlockKey(path.join(directory, 'key'), passphrase, options.signal);
      return await work(path.join(directory, 'config'));
    },
  );
}

interface ConfigurationOptions extends SshOptions {
  readonly ciphers: Readonly<Record<string, string>>;
  readonly directory: string;
}

function configuration({ host, port, username, certificate }: SshAccess, options: ConfigurationOptions): string {
  const { directory } = options;
  const isPinned = options.pinnedKeys.length > 0;
  const knownHosts = isPinned ? path.join(directory, 'pinned') : options.knownHostsFile;
  const settings: Record<string, string | number> = {
    HostName: host,
    Port: port,
    User: username,
    IdentityFile: quoted(path.join(directory, 'key')),
    ...(certificate === undefined ? {} : { CertificateFile: quoted(path.join(directory, 'certificate')) }),
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    PreferredAuthentications: 'publickey',
    BatchMode: 'yes',
    StrictHostKeyChecking: isPinned || options.hostKeys === 'strict' ? 'yes' : 'accept-new',
    UserKnownHostsFile: quoted(knownHosts),
    GlobalKnownHostsFile: '/dev/null',
    UpdateHostKeys: 'no',
    ConnectTimeout: CONNECT_SECONDS,
    ServerAliveInterval: ALIVE_SECONDS,
    ServerAliveCountMax: 4,
    ClearAllForwardings: 'yes',
    ForwardAgent: 'no',
    PermitLocalCommand: 'no',
    ControlPath: 'none',
    RequestTTY: 'no',
    LogLevel: 'ERROR',
    ...options.ciphers,
  };
  const lines = Object.entries(settings).map(([name, value]) => `  ${name} ${value}`);
  return `Host ${HOST_ALIAS}\n${lines.join('\n')}\n`;
}

/** In a configuration of OpenSSH, a percent sign begins a placeholder. */
function quoted(file: string): string {
  if (/["\n\\]/.test(file)) {
    throw new JobtailError('config', `${JSON.stringify(file)} cannot be named in a configuration of OpenSSH`, {
      hint: 'use a path without quotes, backslashes and line breaks',
    });
  }
  return `"${file.replaceAll('%', '%%')}"`;
}

const UNLOCK_MS = 30_000;
/** The question of ssh-keygen, word for word. */
const QUESTION = 'Enter old passphrase: ';

/** Decrypts the key in the file. The passphrase is on no command line. @throws JobtailError unexpected-answer */
async function unlockKey(keyFile: string, passphrase: string, signal: AbortSignal): Promise<void> {
  if (/[\0\r\n]/.test(passphrase)) throw refused();
  const { PATH } = process.env;
  const { code } = await runProgram({
    command: 'ssh-keygen',
    args: ['-q', '-p', '-N', '', '-f', keyFile],
    // ssh-keygen runs `printenv QUESTION` for the answer.
    env: { PATH, SSH_ASKPASS: 'printenv', SSH_ASKPASS_REQUIRE: 'force', DISPLAY: 'none', [QUESTION]: passphrase },
    limit: { totalMs: UNLOCK_MS },
    signal,
  });
  if (code !== 0) throw refused();
}

const refused = (): JobtailError => unacceptable('the passphrase of the service does not unlock its private key');
