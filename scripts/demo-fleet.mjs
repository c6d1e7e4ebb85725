// `agent demo --fleet` of a checkout, on a Node.js that a fleet runs on: this one, or that of .fleet/ (setup-fleet.mjs).
// `npm run demo:fleet`
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { FLEET_NODE } from '../bench/fleet-node.ts';

const program = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const [node = '', ...before] = FLEET_NODE;
const demo = spawn(node, [...before, program, 'demo', '--fleet', ...process.argv.slice(2)], { stdio: 'inherit' });
// Ctrl-C reaches both; the demo tidies up, and this one ends as it does.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => demo.kill(signal));
const [code] = await once(demo, 'exit');
process.exitCode = code ?? 1;
