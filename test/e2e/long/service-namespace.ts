/** A real systemd in namespaces of its own (scripts/systemd-namespace.sh), and what is done in there. */
import { execFile, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { TestContext, TestOptions } from 'vitest';
import { until } from '../../support/e2e-until.ts';
import { needs } from '../../support/needs.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SCRIPT = `${ROOT}scripts/systemd-namespace.sh`;
const run = promisify(execFile);

/** The options of a test that boots one: it needs root, for namespaces of its own. */
export function needsSystemd(): TestOptions {
  if (process.getuid?.() !== 0) return { skip: true };
  return needs('systemd', 'unshare', 'nsenter', 'setpriv', 'pgrep', 'ip', 'curl');
}

export class Namespace {
  #leader = '';

  /** Boots a systemd that is gone when the test is over. The project is at /opt/app in it. */
  static async boot({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Promise<Namespace> {
    const child = spawn('bash', [SCRIPT, ROOT, process.execPath], { stdio: ['pipe', 'pipe', 'inherit'] });
    const namespace = new Namespace();
    let said = '';
    child.stdout?.on('data', (bytes: Buffer) => {
      said += bytes;
    });
    const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
    onTestFinished(async () => {
      child.stdin?.end();
      await ended;
    });
    onTestFinished(async ({ task }) => {
      if (task.result?.state !== 'fail') return;
      const said = await namespace.sh(
        'systemctl list-units --failed --no-pager; journalctl --no-pager -u "agent*" -u "cluster*"',
      );
      process.stderr.write(said);
    });
    namespace.#leader = await until('systemd to be ready', () => {
      if (child.exitCode !== null) throw new Error(`systemd could not be started (${child.exitCode})`);
      return /^ready (\d+)$/m.exec(said)?.[1];
    });
    return namespace;
  }

  /** Runs a shell script inside, with `args` as $1 and so on; what it printed. Rejects if it fails. */
  async sh(script: string, ...args: readonly string[]): Promise<string> {
    const enter = ['-t', this.#leader, '-m', '-u', '-i', '-n', '-p', '-C'];
    const { stdout } = await run('nsenter', [...enter, 'sh', '-euc', script, 'sh', ...args], {
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', NO_COLOR: '1' },
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  }

  /** Whether a shell script succeeds inside. */
  succeeds(script: string, ...args: readonly string[]): Promise<boolean> {
    return this.sh(script, ...args).then(
      () => true,
      () => false,
    );
  }

  /** A property of a unit, as `systemctl show` says it. */
  async show(unit: string, property: string): Promise<string> {
    return (await this.sh('systemctl show -P "$2" "$1"', unit, property)).trim();
  }

  /** The whole journal of a unit. */
  journal(unit: string): Promise<string> {
    return this.sh('journalctl --no-pager -o cat -u "$1"', unit);
  }
}
