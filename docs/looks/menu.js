// On a narrow screen the menu is folded; without this script it is open everywhere.
"use strict";

const narrow = matchMedia("(max-width: 50rem)");
const fold = () => { document.getElementById("pages").open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();
