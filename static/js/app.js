// The one entry: each module finds its root element and does nothing without it.
import { startClock } from "./clock.js";
import { startTimes } from "./times.js";
import { startMenus } from "./menus.js";
import { startMessages } from "./messages.js";
import { startVerbs } from "./verbs.js";
import { startKeys } from "./keys.js";
import { startRun } from "./run.js";
import { startFleet } from "./fleet.js";
import { startPolicies } from "./policies.js";
import { startInbox } from "./inbox.js";
import { startRefresh } from "./refresh.js";
import { startBanner } from "./banner.js";
import { startCopy } from "./copy.js";

document.documentElement.dataset.scripted = "";
startClock();
startTimes();
startMenus();
startMessages();
startVerbs();
startKeys();
startRun();
startFleet();
startPolicies();
startInbox();
startRefresh();
startBanner();
startCopy();
