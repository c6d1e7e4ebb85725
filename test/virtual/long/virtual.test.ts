/** Two minutes of the whole agent in simulated time. */
import { test } from 'vitest';
import { runFor } from '../run.ts';

test('holds its promises for two minutes, whatever happens', { timeout: 600_000 }, () => runFor(120));
