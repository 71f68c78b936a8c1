# bash completion for tutti: asks the program itself, so it knows every verb, option, net, platform and kind
# of data set.
_tutti_options()
{
    "$1" "$2" --help 2>/dev/null | grep -oE '^  (-., )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'
}

# The words that may follow the one before the cursor: an option's choices, or names of a list.
_tutti_values()
{
    case $3 in
    --platform) "$1" --list platforms; echo here ;;
    --model) "$1" --list nets ;;
    -d | --data) "$1" --list data | sed '/^fashion-mnist$\|^synthetic$/!s/$/:/' ;;
    --*) "$1" "$2" --help | sed -nE "s/^  (-., )?$3 ([a-z]+(\|[a-z]+)+) .*/\2/p" | tr '|' '\n' ;;
    esac 2>/dev/null
}

_tutti()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}
    local words=
    if [ "$COMP_CWORD" = 1 ]; then
        words="$("$1" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p')"
        words="$words help --help --version --check-build --list"
    elif [[ $word == -* ]]; then
        words="$(_tutti_options "$1" "$verb") --help"
    elif [ "$verb" = --list ]; then
        words="nets platforms data"
    elif [ "$COMP_CWORD" = 2 ] && [[ ! $verb =~ ^(predict|import|export|status|report|watch)$ ]]; then
        words=$("$1" --list nets 2>/dev/null)
    else
        words=$(_tutti_values "$1" "$verb" "$before")
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [ "${#COMPREPLY[@]}" != 0 ] || COMPREPLY=($(compgen -f -- "$word"))
    [[ ${COMPREPLY[0]} != *: ]] || compopt -o nospace
}
complete -o filenames -F _tutti tutti
