// `npm test`: lint, types, and all tests but the long ones, at the same time. What lint and types find comes last.
import { spawn } from 'node:child_process';

/** Runs a command of npm to its end. */
async function run(command, stdio) {
  const output = [];
  const child = spawn(command, { shell: true, stdio: ['ignore', stdio, stdio] });
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => output.push(bytes));
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { command, code, text: Buffer.concat(output).toString() };
}

const checks = Promise.all(['npm run --silent lint', 'npm run --silent types'].map((command) => run(command, 'pipe')));
// Not in the configuration: a module that `npm run test:mutants` changed would be kept as that of the file.
const options = ['--experimental.fsModuleCache', ...process.argv.slice(2)];
const tests = await run(`vitest run ${options.join(' ')}`, 'inherit');
const failed = (await checks).filter(({ code }) => code !== 0);
for (const { command, text } of failed) process.stdout.write(`\n${text}failed: ${command}\n`);
if (tests.code !== 0 || failed.length > 0) process.exitCode = 1;
