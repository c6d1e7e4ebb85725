/** The keys of GetFileTransferMethod and EndFileTransfer: real temporary pairs, counted (docs/dev/servers.md 5.1). */
import { userInfo } from 'node:os';
import { basename, join } from 'node:path';
import type { SandboxHabits } from '../habits.ts';
import { ServiceFault } from '../refusals.ts';
import type { SubmittedJob } from './cluster.ts';
import { createKeyPair, type KeyFormat, type KeyPair } from './key-pair.ts';

/** In the words of REST; how SOAP puts it is not known. */
const MISMATCH = 'The direct transfer could not be finished due to a public key mismatch.';
const LIMIT_REACHED = 'The maximum limit for the number of generated file transfer ssh keys was reached.';

/** Key pairs that a job can have. */
const MAX_KEYS = 6;
const KEY_LIFETIME_MS = 24 * 3_600_000;

/** A temporary key that the cluster accepts. */
export interface OpenKey {
  readonly jobId: string;
  /** One line as in authorized_keys, without a comment. */
  readonly publicKey: string;
  readonly issuedAtMs: number;
}

/** The form of the keys of a protocol. */
interface KeyHabits {
  readonly counts: 'open' | 'ever';
  readonly format: KeyFormat;
}

/** Called with each key once, so that a real sshd can accept it. */
export interface KeyHooks {
  readonly onKeyIssued?: ((jobId: string, publicKey: string) => void | Promise<void>) | undefined;
  readonly onKeyEnded?: ((jobId: string, publicKey: string) => void | Promise<void>) | undefined;
}

/** A user of a container may have a number, and no name. */
function accountName(read: () => { readonly username: string } = userInfo): string {
  try {
    return read().username;
  } catch {
    return String(process.getuid?.());
  }
}

export class TransferKeys {
  readonly #habits: SandboxHabits;
  readonly #clock: () => number;
  readonly #hooks: KeyHooks;
  #open: OpenKey[] = [];
  readonly #issued = new Map<string, number>();

  constructor(habits: SandboxHabits, clock: () => number, hooks: KeyHooks) {
    this.#habits = habits;
    this.#clock = clock;
    this.#hooks = hooks;
  }

  get open(): readonly OpenKey[] {
    const oldestMs = this.#clock() - KEY_LIFETIME_MS;
    return this.#open.filter(({ issuedAtMs }) => issuedAtMs > oldestMs);
  }

  /** Keys ever issued, over all jobs. */
  get issued(): number {
    return [...this.#issued.values()].reduce((sum, count) => sum + count, 0);
  }

  /** Makes a method for a job; beyond `MAX_KEYS` it is a fault. The release has what is counted, and the usual format. */
  async issue(job: SubmittedJob, release: KeyHabits = { counts: 'open', format: 'rsa-pem' }) {
    const { transferProtocol: protocol, serverHostname, sharedRoot, transferUsername } = this.#habits;
    const sharedBasepath = sharedRoot === null ? job.directory : join(sharedRoot, basename(job.directory));
    const place = { serverHostname, sharedBasepath, protocol };
    if (protocol === 'NetworkShare') return { ...place, credentials: null };
    const pair = await this.#temporary(job, release);
    return { ...place, credentials: { username: transferUsername ?? accountName(), ...pair } };
  }

  /** Ends the key with exactly this public key. One that is not open is a fault. */
  async end(job: SubmittedJob, publicKey: string | undefined): Promise<void> {
    const key = this.open.find((open) => open.jobId === job.jobId && open.publicKey === publicKey);
    if (key === undefined) throw new ServiceFault(MISMATCH);
    this.#open = this.#open.filter((open) => open !== key);
    await this.#hooks.onKeyEnded?.(job.jobId, key.publicKey);
  }

  async #temporary(job: SubmittedJob, { counts, format }: KeyHabits): Promise<KeyPair> {
    // Made before it is counted, so that calls at the same time cannot pass the limit together.
    const pair = await this.#createPair(format);
    const ever = this.#issued.get(job.jobId) ?? 0;
    const open = this.open.filter(({ jobId }) => jobId === job.jobId).length;
    if ((counts === 'ever' ? ever : open) >= MAX_KEYS) throw new ServiceFault(LIMIT_REACHED);
    this.#issued.set(job.jobId, ever + 1);
    this.#open.push({ jobId: job.jobId, publicKey: pair.publicKey, issuedAtMs: this.#clock() });
    await this.#hooks.onKeyIssued?.(job.jobId, pair.publicKey);
    return pair;
  }

  #createPair(usual: KeyFormat): Promise<KeyPair> {
    const { keyFormat, rsaBits } = this.#habits;
    return createKeyPair(keyFormat === 'usual' ? usual : keyFormat, rsaBits);
  }
}
