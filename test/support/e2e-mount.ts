/** A small file system of its own, in memory: it can be filled, and made read-only while it is in use. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import type { TestContext } from 'vitest';
import { until } from './e2e-until.ts';

export class SmallDisk {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** Mounts one of `kib` KiB; the test is skipped, with the reason, where this process may not. */
  static mount(context: TestContext, directory: string, kib: number): SmallDisk {
    if (process.getuid?.() !== 0) context.skip('mounting a small file system needs root');
    fs.mkdirSync(directory, { recursive: true });
    try {
      mount('-t', 'tmpfs', '-o', `size=${kib}k,mode=755`, 'tmpfs', directory);
    } catch (error) {
      context.skip(`this machine allows no mount: ${error instanceof Error ? error.message : String(error)}`);
    }
    context.onTestFinished(() => void execFileSync('umount', ['-l', directory]));
    return new SmallDisk(directory);
  }

  /** Waits until no file of it is open for writing. */
  async makeReadOnly(): Promise<void> {
    await until(`${this.directory} to be read-only`, () => {
      try {
        mount('-o', 'remount,ro', this.directory);
        return true;
      } catch {
        return false;
      }
    });
  }

  /** Takes all the room that is left. */
  fill(): void {
    const { bavail, bsize } = fs.statfsSync(this.directory);
    try {
      fs.appendFileSync(`${this.directory}/ballast`, Buffer.alloc(bavail * bsize, '#'));
    } catch (error) {
      // Somebody else took the last of it.
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
}

function mount(...args: string[]): void {
  execFileSync('mount', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}
