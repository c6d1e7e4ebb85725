/** `agent sandbox`: the simulated cluster, until it is stopped. */
import { once } from 'node:events';
import { untilStopped } from '../../src/cli/process.ts';
import { JobtailError } from '../../src/errors.ts';
import { showAge } from '../../src/numbers.ts';
import { demoJob, demoNames } from '../demo/demo-job.ts';
import { describeSandbox, type Protocol, writeSecrets } from '../description.ts';
import { releaseNamed } from '../rest/releases.ts';
import { Sandbox } from '../sandbox.ts';

interface SandboxCommandOptions {
  readonly directory: string;
  readonly port: number;
  readonly job?: boolean;
  /** How long that job writes. */
  readonly seconds: number;
  /** False: without JobManagementWs. */
  readonly jobs: boolean;
  /** What the configuration that is printed speaks; the sandbox speaks both. */
  readonly protocol: Protocol;
  /** Of REST: a version, as `6.3`. */
  readonly release: string;
}

export function sandbox(options: SandboxCommandOptions): Promise<void> {
  return untilStopped((signal) => serve(options, signal), { isServer: true });
}

async function serve(options: SandboxCommandOptions, signal: AbortSignal): Promise<void> {
  const { directory, port, jobs: jobService } = options;
  // REST always reports jobs.
  const protocol = jobService ? options.protocol : 'soap';
  const habits = { jobService, release: releaseNamed(options.release) };
  const running = await Sandbox.start({ directory, port, habits, beforeListening: writeSecrets }).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EADDRINUSE') throw error;
      throw new JobtailError('usage', `port ${options.port} is in use`, { hint: 'name another one with --port' });
    },
  );
  try {
    process.stdout.write(describeSandbox(running, protocol));
    process.stdout.write('\n# Kept as config.yaml, this is all that an agent needs: agent run -c config.yaml\n');
    if (options.job === true) {
      const job = await running.submitJob(
        demoJob({ seconds: options.seconds, names: demoNames(protocol, habits.release) }),
      );
      process.stdout.write(
        `# Job ${job.jobId} runs for ${showAge(options.seconds * 1_000)}: agent watch ${job.jobId} -c config.yaml\n`,
      );
    }
    if (!signal.aborted) await once(signal, 'abort');
  } finally {
    await running.close();
  }
}
